"""Mixture of experts (MoE): the layer and its routers."""
