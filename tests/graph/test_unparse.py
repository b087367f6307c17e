"""`expand`: a recipe written out is the same model, and says what was implied."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
import torch

import composer
from blocks.core import number
from composer.diagnostics import Source, Span
from composer.graph.parameters import buffers, parameters
from composer.language.expressions.evaluator import evaluate
from composer.language.expressions.parser import parse_expression
from composer.language.yaml.nodes import YamlScalar
from tests.operations import at_most

ZOO = {"gpt2": {"context": 16}, "llama3": {"n_kv_heads": 2, "hidden": 40}, "gemma3": {"sliding_window": 3}, "gpt_mini": {}}
SIZES = {"n_layers": 7, "d_model": 32, "n_heads": 4, "vocab": 61}
PARAMS = {"deep": "true", "wide": "3"}
INPUTS = {"valid": '"bool[batch, time]?"'}
GRAPHS = {
    "lists of numbers that differ from pass to pass": """
  r:
    repeat: 3
    graph:
      p: {type: parameter, shape: [layer + 1, 8]}
      s: {type: sum, axis: first, in: p}
      q: {type: split, into: [l, r], sizes: [layer + 1, 7 - layer], in: input}
      y: {type: concat, in: [q.r, q.l]}
      m: {compute: y + s, axes: {y: b t d, s: d}}""",
    "lists of numbers, longer in the second pass": """
  r:
    repeat: 2
    graph:
      p: {if: layer == 0, then: {type: parameter, shape: [8]}, else: {type: parameter, shape: [3, 8]}}
      s: {type: sum, axis: first, in: p}
      m:
        if: layer == 0
        then: {compute: input * s, axes: {input: b t d, s: ''}}
        else: {compute: input + s, axes: {input: b t d, s: d}}""",
    "axes that differ in number from pass to pass": """
  r:
    repeat: 2
    graph:
      m: {if: layer == 0, then: {type: mean, axis: [time, last]}, else: {type: mean, axis: [first, time, last]}}
      y:
        if: layer == 0
        then: {compute: input + m, axes: {input: b t d, m: b}}
        else: {compute: input + m, axes: {input: b t d, m: ''}}""",
    "numbers of axes by their places": """
  r: {repeat: 3, graph: {m: {type: roll, by: {-2: 2 * layer, last: 1}}}}""",
    "a node called like a block, other in each pass": """
  r: {repeat: 2, graph: {sum: {repeat: layer + 2, graph: {a: {type: add, in: [input, x]}}}, b: relu}}""",
    "a formula with numbers of its pass": """
  r:
    repeat: 4
    each: {rate: (layer + 1) / 4}
    graph:
      a: {compute: input * rate + tanh(input / (2 + layer)) * 1e-05 + sigmoid(input) * 0.125 + cos(input) * 0.0625 + erf(input)}
      b: {type: add, in: [a, x]}""",
    "a formula with signs of its pass": """
  r:
    repeat: 4
    each: {rate: (layer - 1) / 4}
    graph:
      a: {compute: input * rate + tanh(input) * 1e-05 + sigmoid(input) * 0.125 + cos(input) * 0.0625 + erf(input)}
      b: {type: add, in: [a, x]}""",
    "each, by a list and by an expression": """
  a:
    repeat: 5
    each: {inner: [5, 8, 7], factor: 1 + 0.1 * layer}
    graph:
      f: {type: residual, norm: layernorm, body: {type: ffn, hidden: inner}, scale: 1 / sqrt(layer + 1)}
      s: {type: scale, by: factor}""",
    "each of several types of block": """
  a:
    repeat: 4
    each: {what: [{type: ffn, hidden: 6}, {type: attention, heads: 2, mask: causal}, identity]}
    graph: {f: {type: residual, norm: rmsnorm, body: what}, n: rmsnorm}""",
    "norms in different places": """
  a:
    repeat: 4
    each: {where: [pre, post, sandwich, reordered]}
    graph: {f: {type: residual, norm: rmsnorm, body: {type: ffn, hidden: 6}, placement: where}}""",
    "conditions": """
  a: {type: ffn, hidden: 6, when: deep}
  b: {type: linear, out: 8, when: not deep}
  c: {repeat: 3, graph: {f: {type: linear, out: 8, when: layer != 1}, g: silu}}""",
    "slots": """
  a: {type: ffn, hidden: 6, activation: {type: clamped_silu, alpha: 0.25}}
  b: {type: attention, heads: 2, kv_heads: 1, qk_norm: rmsnorm, output_gate: sigmoid, out: none, head_dim: 4, mask: causal}
  c: {type: residual, norm: rmsnorm, layer_scale: 0.1, branch_norm: layernorm, skip_scale: 2, body: ffn}""",
    "inline graphs": """
  a: {type: ffn, hidden: 6, activation: {graph: {one: silu, two: {type: linear, out: dim}}}}
  b: {type: residual, body: {graph: {one: {type: linear, out: 8}, two: {type: add, in: [one, x, input]}}}}
  c: {graph: {one: {type: linear, out: 8, in: left}, two: {type: multiply, in: [one, right]}}, in: {left: b, right: a}}""",
    "ties": """
  a: {type: ffn, hidden: 6}
  b: {type: ffn, hidden: 6, tie: a}
  c: {repeat: 3, graph: {f: {type: linear, out: 8, tie: none if layer == 0 else c(0).f}}}
  d: {type: linear, out: 8, tie: {weight: c(1).f.weight}, trainable: false}""",
    "ties to nodes that what a block is written out as hides": """
  norm: rmsnorm
  body: {type: ffn, hidden: 6}
  a: {type: residual, norm: rmsnorm, body: {type: rmsnorm, tie: norm}}
  b: {type: residual, norm: {type: rmsnorm, tie: norm}, body: {type: ffn, hidden: 6, tie: {up.weight: body.up.weight}}}
  c: {type: residual, norm: rmsnorm, body: {graph: {n: {type: rmsnorm, tie: norm}, f: {type: ffn, hidden: 6, tie: body}}}}
  d: {type: residual, norm: rmsnorm, body: {type: residual, norm: rmsnorm, body: {type: rmsnorm, tie: norm}, tie: a}}""",
    "ties out of passes to nodes that are hidden": """
  norm: {repeat: 3, graph: {f: {type: residual, norm: rmsnorm, body: rmsnorm}}}
  a:
    repeat: 3
    graph: {f: {type: residual, norm: rmsnorm, body: {type: rmsnorm, tie: norm(layer).f.body}}}
  b:
    repeat: 3
    graph: {f: {type: residual, norm: rmsnorm, body: {type: rmsnorm, tie: none if layer == 1 else norm(layer).f.norm}}}
  c:
    repeat: 3
    share: true
    graph: {f: {type: residual, norm: rmsnorm, body: {type: rmsnorm, tie: norm(1).f.norm}}}
  d:
    type: residual
    norm: rmsnorm
    body: {repeat: 3, graph: {f: {type: residual, norm: rmsnorm, body: rmsnorm}}, tie: norm}
  e:
    type: residual
    norm: rmsnorm
    body: {graph: {f: {type: residual, norm: rmsnorm, body: rmsnorm, tie: norm(2).f}}}""",
    "outputs that nothing reads, called like a node that some passes leave out": """
  a: {repeat: 3, graph: {f: {type: linear, out: 8, when: layer == 0}, g: {type: silu, in: input}}, outputs: {y: g, f: f}}
  b: {repeat: 3, graph: {f: {type: linear, out: 8, when: layer == 0}, g: silu}, outputs: {y: g, f: input}}
  c: {repeat: 3, graph: {f: {type: linear, out: 8, when: layer != 1}, g: silu, h: relu}, outputs: {y: h, f: g}}
  d:
    repeat: 3
    graph:
      p: {graph: {f: {type: linear, out: 8, when: layer == 0}, g: silu, h: relu}, outputs: {y: h, f: f}}
      q: {graph: {f: {type: linear, out: 8, when: layer == 0}, g: silu, h: relu}, outputs: {y: h, f: g}}
      r: {graph: {f: {type: linear, out: 8, when: layer < 2}, g: silu}, outputs: {y: g, f: f, g: g}}""",
    "passes from outside and of the pass before": """
  a: {repeat: 3, graph: {f: {type: linear, out: 8}, m: {type: add, in: [f, "input if layer == 0 else a(layer - 1).f"]}}}
  b: {type: weighted_sum, in: ["a(:)", "a(0).f", x]}""",
    "passes of which only some are read, and other nodes in them": """
  a: {repeat: 4, graph: {f: {type: linear, out: 8}, m: {type: add, in: [f, input]}}}
  b: {type: concat, in: ["a(1:3)", a(1).f, a(2), "a(:).f"]}""",
    "values that are carried by their names": """
  up: {type: linear, out: 8}
  a:
    repeat: 3
    in: {left: up, right: x}
    graph: {f: {type: linear, out: 8, in: left}, n: {type: silu, in: right}, m: {type: multiply, in: [f, n]}}
    outputs: {left: m, right: f}
  b: {type: add, in: [a, a.right]}""",
    "a port that only some passes have, in a slot": """
  a:
    repeat: 4
    each:
      what: [{type: ffn, hidden: 6}, {type: moe, experts: 2, expert: ffn, router: {type: switch_router, capacity: 3}}]
    graph: {f: {type: residual, body: what}}
  b: {type: add, in: [a, "a(:).f.body.load_balancing"]}""",
    "masks that read inputs": """
  a: {type: attention, heads: 2, mask: causal and (window(wide) or global_first(1)) and valid(valid)}
  b:
    repeat: 2
    graph:
      f: {type: residual, norm: rmsnorm, body: {type: attention, heads: 2, mask: valid(valid), positions: rotary}}""",
    "all earlier passes, of which the first has none": """
  a: {repeat: 3, graph: {s: {type: weighted_sum, in: ["a(:)", input]}, n: rmsnorm}}
  b: {repeat: 1, graph: {s: {type: weighted_sum, in: ["b(:).n", input]}, n: rmsnorm}}""",
    "graphs of which nothing is left": """
  a: {repeat: 2, share: true, graph: {n: none}}
  b: {type: ffn, activation: {graph: {n: none}}}
  c: {graph: {n: none}}""",
    "states, also in passes that differ": """
  a: {type: state, shape: [8], next: c, init: ones}
  b:
    repeat: 3
    graph:
      kept: {type: state, shape: [8], next: now if layer == 1 else kept}
      one: {type: mean, axis: time, in: input}
      now: {type: mean, axis: batch}
      y: {type: add, in: [input, kept]}
    in: x
  m: {type: mean, axis: time}
  c: {type: mean, axis: batch}
  d: {type: add, in: [b, a]}
outputs: {d: d}""",
    "losses": """
  a: {repeat: 3, graph: {f: {type: moe, experts: 2, expert: ffn}}}
  b: {type: linear, out: 8}
outputs: {b: b}
losses:
  balance: {in: "a(:).f.load_balancing", weight: 1 / wide}
  two: {in: ["a(0).f.router_z", "a.f.router_z"], reduction: sum}
  near: {type: mse, in: [b, a], target: x}
  far: {type: mse, in: {input: "a(1:)", target: x}, weight: 0.5}""",
    "values that are handed from pass to pass by their names": """
  a:
    repeat: 3
    in: {left: x, right: x}
    graph: {f: {type: linear, out: 8, in: right}, g: {type: multiply, in: [f, left]}}
    outputs: {right: g, left: f}
  b: {type: add, in: [a.left, a.right]}""",
    "several values that are carried by name": """
  a:
    repeat: 3
    in: {left: x, right: x, still: x}
    graph: {f: {type: linear, out: 8, in: left}, g: {type: add, in: [right, f]}, m: {type: multiply, in: [g, still]}}
    outputs: {left: m, right: g}""",
    "one set of weights": """
  a:
    repeat: 4
    share: true
    graph: {f: {type: residual, norm: rmsnorm, body: {type: ffn, hidden: 6}}, s: {type: scale, by: 1 / (layer + 1)}}
  b: {type: add, in: [a, "a(1).f"]}
  c: {repeat: 3, share: deep, graph: {f: {type: linear, out: 8}}}""",
    "repeats inside repeats": """
  a: {repeat: 2, as: i, graph: {b: {repeat: 3, graph: {f: {type: ffn, hidden: 4 + layer}}}, n: rmsnorm}}""",
    "numbers with many digits": """
  a: {repeat: 3, graph: {f: {type: scale, by: 0.02 / sqrt(8 * (layer + 1))}}}
  b: {type: scale, by: 1e20 / 3}
  c: {type: scale, by: 1 / 3e200}
  d: {type: scale, by: 1e300 / 7}""",
    "groups that read other nodes in each pass": """
  s: {type: linear, out: 8}
  t: {type: linear, out: 8}
  a:
    repeat: 3
    graph:
      g: {graph: {p: {type: linear, out: 8, in: input}, q: {type: add, in: [p, s if layer == 0 else t]}}}
      h: {type: linear, out: 8}""",
    "groups that read earlier passes, or themselves in one": """
  s: {type: linear, out: 8}
  a:
    repeat: 3
    graph:
      e: {type: linear, out: 8}
      g:
        graph:
          p: {type: linear, out: 8}
          q: {type: add, in: [p, "s if layer == 0 else a(layer - 1).e"]}
          r: {type: add, in: [q, s if layer == 1 else p]}
      h: {type: linear, out: 8}""",
    "groups in groups that read two of three": """
  s: {type: linear, out: 8}
  t: {type: linear, out: 8}
  u: {type: linear, out: 8}
  a:
    repeat: 3
    graph:
      g: {graph: {q: {graph: {r: {type: add, in: [s if layer == 0 else t, u if layer == 1 else x]}}}}}
      h: {type: linear, out: 8}""",
    "repeats in repeats that read earlier passes of the outer one": """
  a: {repeat: 3, graph: {b: {repeat: 2, graph: {s: {type: weighted_sum, in: [input, "a(:)"]}}}}}
  c:
    repeat: 3
    graph:
      f: {type: linear, out: 8}
      d: {repeat: 2, graph: {s: {type: weighted_sum, in: [input, "c(:)", "d(:)"]}}}
      e: {repeat: 2, graph: {s: {type: weighted_sum, in: [input, "c(:).f", "d(:)"]}}}""",
    "three repeats in one another that read each other's passes": """
  a:
    repeat: 3
    as: i
    graph:
      f: {type: linear, out: 8}
      b:
        repeat: 2
        as: j
        graph:
          c: {repeat: 2, as: k, graph: {s: {type: weighted_sum, in: [input, "a(:i)", "a(:i).f", "b(:j)", "c(:k)"]}}}""",
    "the pass before of an outer repeat, where there is one": """
  a:
    repeat: 3
    as: i
    graph:
      f: {type: linear, out: 8}
      b: {repeat: 2, graph: {s: {type: weighted_sum, in: [input, a(i - 1) if i > 0 else x]}}}
      g: {graph: {c: {repeat: 2, graph: {s: {type: add, in: [input, a(i - 1).f if i > 0 else x]}}}}}""",
    "outputs that differ": """
  z: {type: linear, out: 8}
  l:
    repeat: 3
    graph:
      a: {type: linear, out: 8}
      b: {type: linear, out: 8, in: a}
    outputs: {y: a if layer == 0 else b, w: b if layer == 1 else a}
  m: {type: add, in: [l.y, l.w]}""",
    "groups that are handed more in some passes": """
  z: {type: linear, out: 8}
  l:
    repeat: 3
    graph:
      a: {type: linear, out: 8}
      b:
        if: layer == 0
        then: {in: {p: a}, graph: {q: {type: linear, out: 8, in: p}}}
        else: {in: {p: a, r: z}, graph: {q: {type: add, in: [p, r]}}}
      c: {type: add, in: [a, b]}""",
    "nodes in another order in some passes": """
  z: {type: linear, out: 8}
  l:
    repeat: 3
    graph:
      a: {type: linear, out: 8, in: input if layer == 0 else b}
      b: {type: linear, out: 8, in: a if layer == 0 else input}
    outputs: {y: b if layer == 0 else a}""",
    "other nodes in another order in some passes": """
  z: {type: linear, out: 8}
  l:
    repeat: 3
    graph:
      a: {type: "linear", out: 8, in: input if layer == 0 else b}
      b: {if: layer == 0, then: {type: relu, in: a}, else: {type: linear, out: 8, in: input}}
    outputs: {y: b if layer == 0 else a}""",
    "a repeat, a block and a scan at one place": """
  z: {type: linear, out: 8}
  l:
    repeat: 3
    graph:
      a: {type: linear, out: 8}
      b:
        if: layer == 0
        then: {repeat: 2, in: {p: a}, graph: {q: {type: linear, out: 8, in: p}, s: {type: add, in: [q, a]}}}
        else:
          if: layer == 1
          then: {type: add, in: [a, input]}
          else:
            scan: time
            in: {x: a, h: zero}
            graph: {c: {type: gru_cell, hidden: 8, in: {x: x, h: h}}}
            outputs: {y: c, h: c}
      zero: {type: zeros, shape: [8], in: a}
      d: {type: add, in: [b, a]}""",
    "repeats in repeats that differ by both indices": """
  z: {type: linear, out: 8}
  l:
    repeat: 3
    as: i
    graph:
      a: {type: linear, out: 8}
      m:
        repeat: 2
        as: j
        graph:
          b:
            if: i + j > 1
            then: {graph: {q: {type: linear, out: 8}, s: {type: add, in: [q, a]}}}
            else: {repeat: 2, graph: {r: {type: add, in: [input, a]}, s: {if: i > 0, then: {type: add, in: [r, a]}, else: gelu}}}
          c: {type: add, in: [b, a]}""",
    "a tied node in one pass": """
  z: {type: linear, out: 8}
  l:
    repeat: 3
    graph:
      a: {type: linear, out: 8}
      b:
        if: layer == 0
        then: {type: linear, out: 8, tie: {weight: a.weight}}
        else: {type: add, in: [a, input]}""",
    "groups that read two passes before": """
  z: {type: linear, out: 8}
  l:
    repeat: 4
    graph:
      a: {type: linear, out: 8}
      b:
        if: layer < 2
        then: {graph: {q: {type: add, in: [input, a]}}}
        else: {graph: {q: {type: add, in: [input, "l(layer - 1).a", "l(layer - 2).a", a]}}}
      c: {if: layer < 2, then: {type: add, in: [a, b]}, else: {type: weighted_sum, in: [input, "l(:).b"]}}""",
    "graphs in slots that read beside them": """
  z: {type: linear, out: 8}
  l:
    repeat: 3
    graph:
      a: {type: linear, out: 8}
      b:
        if: layer < 1
        then: {type: residual, body: {graph: {q: {type: linear, out: 8}, r: {type: add, in: [q, a]}}}}
        else:
          type: residual
          norm: layernorm
          body: {repeat: 2, graph: {w: {type: linear, out: 8}, v: {type: add, in: [w, a]}}}""",
    "frozen nodes in one pass": """
  z: {type: linear, out: 8}
  l:
    repeat: 3
    graph:
      a: {type: linear, out: 8}
      b: {if: layer == 0, then: {type: linear, out: 8, trainable: false}, else: {type: add, in: [a, input]}}
      c:
        if: layer == 0
        then: {type: linear, out: 8, trainable: false}
        else: {type: linear, out: 8, bias: false}
      d: {if: layer == 0, then: {type: linear, out: 8, trainable: false}, else: relu}""",
    "two kinds of node, and none": """
  z: {type: linear, out: 8}
  l:
    repeat: 4
    graph:
      a: {type: linear, out: 8}
      b:
        if: layer == 0
        then: {type: linear, out: 8}
        else:
          if: layer == 1
          then: relu
          else: {type: linear, out: 8, when: layer == 2}
      c:
        if: layer == 0
        then: {type: linear, out: 8, in: a}
        else:
          if: layer == 1
          then: {type: add, in: [a, b]}
          else: {type: linear, out: 8, when: layer == 2}
      d: {type: gelu, in: c}""",
    "blocks of other ports at one place": """
  z: {type: linear, out: 8}
  l:
    repeat: 4
    graph:
      a: {type: linear, out: 8}
      b:
        if: layer == 0
        then: {type: linear, out: 8, in: a}
        else:
          if: layer == 1
          then: {type: add, in: [a, input]}
          else: {type: attention, heads: 1, in: {x: a, memory: z}}
      c:
        if: layer == 0
        then: {type: linear, out: 8, in: a}
        else:
          if: layer == 1
          then: {type: residual, body: ffn}
          else: {type: attention, heads: 1, in: {x: a, memory: z}}""",
    "more of several in some passes": """
  z: {type: linear, out: 8}
  l:
    repeat: 4
    graph:
      a: {type: linear, out: 8}
      b: {if: layer == 0, then: {type: add, in: a}, else: {type: add, in: [a, input, z]}}
      c: {if: layer == 0, then: {type: add, in: [a, b]}, else: {type: weighted_sum, in: [a, input, b]}}""",
    "ranges of earlier passes that are empty in more than the first": """
  a: {repeat: 4, graph: {s: {type: weighted_sum, in: [input, "a(:-1)", "a(1:layer)"]}}}
  b: {repeat: 4, graph: {c: {repeat: 2, graph: {s: {type: weighted_sum, in: [input, "b(:-1)"]}}}}}""",
    "one pass, and all, of a repeat outside": """
  a: {repeat: 3, graph: {f: {type: linear, out: 8}}}
  b: {graph: {c: {graph: {s: {type: weighted_sum, in: [input, a, a(0), "a(:)"]}}}}}
  c: {repeat: 2, graph: {d: {repeat: 2, graph: {s: {type: weighted_sum, in: [input, a, "a(1:)", "a(:).f", a(-1)]}}}}}""",
    "two that read the same passes": """
  a:
    repeat: 3
    graph:
      s: {type: weighted_sum, in: [input, "a(:)"]}
      t: {type: weighted_sum, in: [s, "a(:)", "a(1:layer)"]}""",
    "nodes that come and go in repeats in repeats": """
  a:
    repeat: 3
    as: i
    graph:
      f: {type: linear, out: 8, when: i != 1}
      b:
        repeat: 3
        as: j
        graph: {g: {type: linear, out: 8, when: i != j}, s: {type: weighted_sum, in: [g, "a(:)"]}}""",
    "repeats in repeats of as many passes as the outer one says": """
  a:
    repeat: 3
    as: i
    graph:
      f: {type: linear, out: 8}
      b: {repeat: 1 + i, graph: {g: {type: linear, out: 8}, s: {type: weighted_sum, in: [g, "a(:).f", input]}}}""",
    "nodes that are called like values": """
  a:
    repeat: 4
    each: {what: [{type: ffn, hidden: 4}, silu], that: [silu, {type: ffn, hidden: 3}]}
    graph: {silu: what, layer: that, ffn: silu, b: {type: add, in: [silu, ffn, a(layer - 1) if layer > 0 else x, layer]}}""",
    "nodes of inner and outer repeats whose paths read alike": """
  a:
    repeat: 3
    as: i
    graph:
      n:
        repeat: 2
        graph:
          b: {type: add, in: [input, x if i == 0 else input]}
          n_b: {type: add, in: [b, x if layer == 0 else input]}
      n_n: {type: add, in: [n, x if i == 1 else input]}""",
    "groups that do not read what stands above": """
  g: {graph: {f: {type: linear, out: 4, in: x}, h: {type: linear, out: 8}}}
  r: {repeat: 2, graph: {i: {graph: {j: {type: linear, out: 8, in: x}}}, s: {type: add, in: [i, input, g]}}}
  t: {type: silu, when: false}
  k: {graph: {l: {graph: {m: {type: linear, out: 8, in: r}}}}}""",
    "scans in repeats that read earlier passes": """
  r:
    repeat: 3
    as: i
    graph:
      l: {type: linear, out: 8}
      m: {type: mean, axis: time}
      s:
        scan: time
        in: {input: l, h: m}
        graph: {k: {type: linear, out: 8}, o: {type: add, in: [k, m, r(i - 1).m if i > 0 else h]}}
        outputs: {y: o, h: o}""",
    "optional ports that only some passes wire": """
  a:
    repeat: 3
    graph:
      f: {type: attention, heads: 2, mask: causal, in: {x: input, v: a(layer - 1).f.v if layer > 0 else none}}
      g: {type: residual, norm: rmsnorm, body: {type: attention, heads: 2, in: {v: none if layer == 0 else a(0).g.body.v}}}""",
    "outputs that are called like what is read": """
  y: {type: linear, out: 8}
  r:
    repeat: 3
    in: x
    graph: {a: {type: linear, out: 8}, b: {type: add, in: [a, y]}, c: {type: silu, when: layer == 1}}
    outputs: {z: c}
  g: {graph: {y: {type: linear, out: 8}, p: {type: linear, out: 8}, q: {type: silu, when: false}}, outputs: {w: p, q: q}}
  h: {type: add, in: [g.y, g, g.q]}""",
    "groups of which passes lack the last node": """
  a:
    repeat: 3
    graph:
      t: {type: linear, out: 8}
      g: {graph: {n: {type: ffn, hidden: 6, when: layer == 0}}}
      h: {graph: {n: {type: ffn, hidden: 6, when: layer == 0}, m: {type: rmsnorm, when: layer == 1}}}
      i:
        graph:
          b: {type: relu, when: layer == 1}
          c: {graph: {d: {type: silu, when: layer == 2}, e: {type: tanh, when: layer == 0}}}""",
    "the input of the model in a group with an input of its own": """
  a: {type: linear, out: 8}
  b: {type: residual, norm: rmsnorm, body: {type: cross_attention, heads: 2, in: {memory: input}}}""",
    "a port that only some types of block have": """
  a:
    repeat: 4
    each: {what: [{type: ffn, hidden: 6}, {type: attention, heads: 2, in: {memory: input}}, identity]}
    graph: {f: {type: residual, norm: rmsnorm, body: what}, n: rmsnorm}""",
    "passes of a repeat that is called like a node of the graph that reads them": """
  add: {repeat: 3, graph: {f: {type: ffn, hidden: 6}}}
  b: {type: residual, body: {graph: {c: {graph: {s: {type: add, in: ["add(:)", input]}, n: rmsnorm}}, d: layernorm}}}""",
    "passes that read other passes of another repeat": """
  e: {repeat: 2, graph: {f: {type: ffn, hidden: 6}, n: rmsnorm}}
  y: {type: linear, out: 8, in: x}
  a:
    repeat: 3
    graph:
      f:
        type: residual
        norm: rmsnorm
        body: {type: cross_attention, heads: 2, in: {memory: e(layer - 1 if layer < 2 else 0).f}}""",
    "nodes that read past what stands above them, and are of another kind in each pass": """
  z: {type: linear, out: 8}
  a:
    repeat: 2
    graph:
      s: {type: linear, out: 8}
      t: {type: linear, out: 8}
      u: {type: silu, when: false, in: s}
      c: {if: layer == 0, then: ffn, else: silu}
      d: {type: add, in: [c, t]}
  b:
    repeat: 2
    in: {left: a, right: z}
    graph:
      u: {type: silu, when: false, in: right}
      c: {if: layer == 0, then: ffn, else: silu}
      d: {type: add, in: [c, left]}
    outputs: {left: d}""",
    "nodes of which one pass has another above": """
  a:
    repeat: 2
    graph:
      s: {type: linear, out: 8}
      t: {if: layer == 0, then: {type: linear, out: 8, in: input}, else: none}
      c: {if: layer == 0, then: ffn, else: silu}
      d: {type: add, in: [c, s]}
  b:
    repeat: 2
    graph:
      g:
        graph:
          s: {type: linear, out: 8}
          t: {if: layer == 0, then: {type: linear, out: 8, in: input}, else: none}
          c: {if: layer == 0, then: ffn, else: silu}
          d: {type: add, in: [c, s]}""",
    "nodes that are left out in some passes and read in all": """
  a:
    repeat: 3
    graph:
      f: {type: linear, out: 8}
      q: {type: ffn, hidden: 6, when: layer != 1}
      h: {type: linear, out: 8, in: f}
    outputs: {y: h}
  b: {type: weighted_sum, in: [a(0).q, a(1).q, a(2).q]}
  c: {type: weighted_sum, in: [b, "a(:).q"]}""",
    "nodes that are left out in some passes and read by later ones": """
  a:
    repeat: 4
    graph:
      f: {type: linear, out: 8}
      q: {type: ffn, hidden: 6, when: layer != 1}
      h: {type: weighted_sum, in: ["a(:).q", f]}
    outputs: {y: h}
  b:
    repeat: 4
    graph:
      f: {type: linear, out: 8}
      q: {type: ffn, hidden: 6, when: layer != 1}
      k: {graph: {h: {type: add, in: [f, b(layer - 1).q if layer > 0 else input]}}}
    outputs: {y: k}
  c: {type: add, in: [a.q, b.q, b(1).q]}""",
    "nodes that are left out in groups, and in repeats in repeats": """
  a:
    repeat: 3
    graph: {g: {graph: {f: {type: linear, out: 8}, q: {type: ffn, hidden: 6, when: layer != 1}, h: silu}, outputs: {y: h}}}
  b: {type: weighted_sum, in: [a(0).g.q, a(1).g.q, a(2).g.q]}
  c:
    repeat: 3
    as: i
    graph:
      g: {repeat: 2, graph: {f: {type: linear, out: 8}, q: {type: ffn, hidden: 6, when: layer != i}, h: silu}}
      h: {type: add, in: [g(0).q, g.q]}
  d: {type: weighted_sum, in: [c(0).g.q, c(1).g.q, c(2).g.q]}""",
    "nodes of which only some passes are read, of graphs that name their outputs": """
  a: {repeat: 2, graph: {f: {type: ffn, hidden: 4 + layer}, g: {type: linear, out: 8}}, outputs: {y: g}}
  b: {repeat: 2, graph: {g: {graph: {f: {type: ffn, hidden: 4 + layer}, g: {type: linear, out: 8}}, outputs: {y: g}}}}
  c: {type: add, in: [a(0).f, b, b(0).g.f]}""",
    "nodes that are called like keys": """
  a:
    repeat: 3
    graph:
      graph: {type: linear, out: 8}
      tie: {type: ffn, hidden: 4 + layer}
      outputs: {type: ffn, hidden: 6, when: layer == 0}
      next: {type: add, in: [graph, outputs]}
      each: {type: ffn, hidden: 5 + layer}
      in: silu
  b: {type: add, in: [a(0).outputs, a]}""",
    "parameters that are tied to those of another pass": """
  a:
    repeat: 3
    graph:
      f: {type: attention, heads: 2, tie: {q.weight: "none if layer == 0 else a(layer - 1).f.q.weight"}}
      g: {type: linear, out: 8, when: layer > 0, tie: none if layer < 2 else a(1).g}
      h: {type: add, in: [f, g]}""",
}


def on_stream(graph: str) -> composer.Recipe:
    """Return a graph on the stream `x`, with those params and inputs that it names."""
    params, inputs = (
        "".join(f"  {name}: {value}\n" for name, value in known.items() if re.search(rf"\b{name}\b", graph))
        for known in (PARAMS, INPUTS)
    )
    head = f"params:\n{params}" if params else ""
    return composer.load(f'recipe: written\n{head}inputs:\n  x: "float[batch, time, 8]"\n{inputs}graph:{graph}\n')


def types(recipe: composer.Recipe) -> dict[str, str]:
    """Return the types of everything that goes in and comes out."""
    typed = recipe.program
    inside = {f"{node.name}.{port}": str(type_) for node in typed.root.nodes for port, type_ in node.outputs.items()}
    return inside | {name: str(type_) for ports in (typed.inputs, typed.root.outputs) for name, type_ in ports.items()}


def table(recipe: composer.Recipe) -> dict[str, Any]:
    """Return everything that is kept or learned, with its shape, role, initial values, and what it is tied to."""
    entries = parameters(recipe.program)
    learned = {each.name: (each.parameter.shape, each.parameter.role, each.trainable, each.tied_to) for each in entries}
    return {**learned, **buffers(recipe.program)}


def computed(recipe: composer.Recipe) -> list[torch.Tensor]:
    """Return what the model computes from some input after one in training, with the initial values of a seed."""
    model = recipe.compile(seed=3, dtype=torch.float64)
    torch.manual_seed(4)
    first = torch.randint(61, (2, 9)) if "tokens" in recipe.program.inputs else torch.randn(2, 9, 8, dtype=torch.float64)
    given = {"valid": torch.arange(9) < torch.tensor([[9], [6]])} if "valid" in recipe.program.inputs else {}
    with torch.no_grad():
        model.train()(first, **given)
        output = model.eval()(first, **given)
    return [*output[:-1], *output.losses.values()]


def assert_same(recipe: composer.Recipe) -> None:
    """Assert that, written out, a model is read again as the same model, and written out again it stays as it is."""
    text = recipe.expand()
    again = composer.load(text)
    assert [each for each in again.check() if each.severity == "error"] == []
    assert types(again) == types(recipe)
    assert table(again) == table(recipe)
    for ours, theirs in zip(computed(recipe), computed(again), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    assert bare(again.expand()) == bare(text)


def bare(text: str) -> str:
    """Return a text without its remarks."""
    return re.sub(r" +# .*$", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", ZOO)
def test_the_zoo_written_out_is_the_same_model(name: str) -> None:
    """Parameters, types, and every number that comes out."""
    assert_same(composer.load(name, overrides={**SIZES, **ZOO[name]}))


MANY = [f"the_name_of_a_node_{place:02}" for place in range(30)]


def test_a_choice_of_more_outputs_than_fit_on_a_line_is_written_in_steps() -> None:
    """By nodes that are left out, so that the model is the same."""
    nodes = "".join(f"      {name}: {{type: linear, out: 8}}\n" for name in MANY)
    picks = "".join(
        f"      pick_{place}: {{type: identity, when: false, in: {name} if layer == {place} else {before}}}\n"
        for place, (name, before) in enumerate(zip(MANY, ["input", *(f"pick_{place}" for place in range(30))], strict=False))
    )
    assert_same(on_stream(f"\n  a:\n    repeat: 30\n    graph:\n{nodes}{picks}    outputs: {{y: pick_29}}"))


def test_nodes_of_more_kinds_than_fit_on_a_line_are_chosen_in_steps() -> None:
    """Each reads another node, by a long name."""
    nodes = "".join(f"  {name}: {{type: linear, out: 8}}\n" for name in MANY)
    choice = "{type: add, in: [f, x]}"
    for place, name in enumerate(MANY):
        choice = f"{{if: layer == {place}, then: {{type: add, in: [f, {name}]}}, else: {choice}}}"
    assert_same(on_stream(f"\n{nodes}  a:\n    repeat: 31\n    graph:\n      f: {{type: linear, out: 8}}\n      b: {choice}"))


def test_repeats_in_repeats_are_written_in_time() -> None:
    """Those inside are written once, in however many ways those around them are tried."""
    lines, indent = [""], "  "
    for depth in range(7):
        each = f"each: {{w{depth}: [0, 1, {depth}]}}"
        lines += [f"{indent}a{depth}:", f"{indent}  repeat: 3", f"{indent}  {each}", f"{indent}  graph:"]
        indent += "    "
        lines += [f"{indent}f: {{type: linear, out: 8}}"]
    lines += [f"{indent}g:", f"{indent}  if: {' + '.join(f'w{depth}' for depth in range(7))} > 9"]
    lines += [f"{indent}  then: {{graph: {{p: {{type: linear, out: 8}}, q: {{type: add, in: [p, f]}}}}}}"]
    lines += [f"{indent}  else: {{type: linear, out: 8}}"]
    text = "\n".join(lines)
    recipe = on_stream(text)
    recipe.check()
    with at_most(20_000_000):
        written = recipe.expand()
    assert composer.load(written).diff(recipe).equal


@pytest.mark.parametrize("more", [-18, -1, 0, 1, 2, 14])
@pytest.mark.parametrize(
    ("body", "most"), [("{type: residual, body: relu}", 26), ("{repeat: 2, each: {n: [relu, tanh]}, graph: {f: n}}", 25)]
)
def test_what_is_nested_too_deep_to_be_read_is_refused(body: str, most: int, more: int) -> None:
    """By the check, so that what is written out can always be read; `most` groups are not."""
    depth = most + more
    levels = [f"{{type: residual, body: w{number + 1}}}" for number in range(depth)]
    params = "".join(f"  w{number}: {{type: block, default: {text}}}\n" for number, text in enumerate([*levels, body]))
    recipe = composer.load(f"""recipe: deep
params:
{params}inputs: {{x: "float[batch, time, 8]"}}
graph:
  a: {{repeat: 2, each: {{what: [w0, relu]}}, graph: {{f: what}}}}
""")
    found = {each.code for each in recipe.check() if each.severity == "error"}
    assert found == ({"too-deep"} if more > 0 else set())
    if not found:
        assert_same(recipe)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_graphs_written_out_are_the_same_model(graph: str) -> None:
    """What recipes can say, one thing at a time."""
    assert_same(on_stream(graph))


def test_every_number_is_read_as_it_was_written() -> None:
    """Doubles of every size have all of their digits."""
    chance = random.Random(0)
    for value in (chance.random() * 10.0 ** chance.randint(-300, 300) for _ in range(500)):
        text = number(value)
        assert evaluate(parse_expression(YamlScalar(text, Span(Source("number", text), 1, 1, 1, 1 + len(text)))), {}) == value


def test_edges_that_were_implied_are_marked_and_written_ones_are_not() -> None:
    """A reader sees what the composer added."""
    text = on_stream("\n  a: ffn\n  b: {type: silu, in: x}\n  c: {type: add, in: [a, b]}").expand()
    lines = text.splitlines()
    assert any(line.startswith("  a: {type: ffn") and line.endswith(", in: x}  # implied") for line in lines)
    assert "  b: {type: silu, in: x}" in lines
    assert "  c: {type: add, in: [a, b]}" in lines


def test_params_are_replaced_by_their_values_and_the_rest_is_kept() -> None:
    """Doc, source, task, initial values and weights stay; params are gone."""
    recipe = composer.load("gpt2", overrides=SIZES)
    text = recipe.expand()
    read = composer.load(text)
    assert "params:" not in text
    assert (read.name, read.doc, read.task) == (recipe.name, recipe.doc, recipe.task)
    assert "normal: 0.02" in text and "repeat: 7" in text
    assert read.program.untyped.recipe.checkpoints is not None


def test_sizes_in_rules_of_weights_are_replaced_too() -> None:
    """And what a `config.json` would set is left out, since there is nothing left to set."""
    recipe = composer.load(
        "recipe: fused\nparams: {n_heads: 3}\ninputs: {x: 'float[batch, time, 12]'}\n"
        "graph:\n  a: {type: attention, heads: n_heads}\n"
        "checkpoints:\n  neox:\n    config: {params: {n_heads: heads}}\n    rules:\n"
        "      a.(q|k|v).*: {from: qkv.*, split: 3, interleave: n_heads, permute_rotary: {head_dim: 12 / n_heads, of: [q, k]}}\n"
        "      a.out.weight: {from: out.weight, reshape: [n_heads, 4, 12], transpose: true}\n"
    )
    text = recipe.expand()
    assert "interleave: 3, permute_rotary: {head_dim: 4, of: [q, k]}" in text and "reshape: [3, 4, 12]" in text
    assert "config" not in text and composer.load(text).program


@pytest.mark.parametrize(
    "nodes",
    [
        "g: {graph: {p: {type: linear, in: x, out: 8}, q: {when: false, type: silu, in: input}}}\n"
        "  h: {graph: {k: {type: silu, in: g.q}, l: {type: add, in: [k, g.p]}}}",
        "y: {type: linear, out: 8}\n"
        "  r: {repeat: 3, in: x, graph: {a: ffn, b: {type: add, in: [a, y]}, c: {type: silu, when: layer == 1}}}",
        "g: {graph: {y: {type: linear, out: 8}, p: {type: linear, out: 8}, q: {type: silu, when: false}}}\n"
        "  h: {type: add, in: [g.y, g, g.q]}",
        "r: {repeat: 2, graph: {p: {type: linear, out: 8}, q: {type: ffn, hidden: 6, when: layer == 0}}}\n"
        "  h: {type: add, in: [r(0).q, r.q, r]}",
        "r: {repeat: 2, graph: {p: {type: ffn, hidden: 4 + layer}, q: {type: silu, when: false}, s: {type: linear, out: 8}}}\n"
        "  h: {type: add, in: [r(0).q, r]}",
        "r: {repeat: 2, graph: {p: {type: linear, out: 8}, q: {repeat: 2, graph: {s: ffn}, when: layer == 0}, t: silu}}\n"
        "  h: {type: add, in: [r, r.q]}",
    ],
)
def test_outputs_get_names_that_nothing_else_has(nodes: str) -> None:
    """Neither a node nor an input, which would be carried; and what a node passes on that is left out keeps its name."""
    recipe = on_stream(f"\n  {nodes}")
    again = composer.load(recipe.expand())
    assert [each for each in again.check() if each.severity == "error"] == []
    assert recipe.diff(again).equal
    assert table(again) == table(recipe)
    for ours, theirs in zip(computed(recipe), computed(again), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


TWO_WIDTHS = """
recipe: widths
params: {width: 16}
inputs: {x: "float[batch, time, width]"}
blocks:
  over_heads:
    inputs: {x: "float[batch, heads, time, head_dim]"}
    graph:
      joined: {type: rearrange, pattern: b h t d -> b t (h d)}
      NODES
      y: {type: rearrange, pattern: b t (h d) -> b h t d, lengths: {d: head_dim}}
graph:
  layers:
    repeat: 2
    in: x
    graph:
      attn: {type: residual, norm: rmsnorm, body: {type: attention, heads: 4, kv_heads: 2, mask: causal, qk_norm: over_heads}}
"""


WIDE = [
    ("m: {type: residual, body: {type: gated_ffn, hidden: 4 * dim}}", "hidden: 4 * dim"),
    ("m: {type: residual, body: {type: ffn, hidden: heads * head_dim + 3}}", "hidden: dim + 3"),
    ("m: {type: residual, body: {type: ffn, hidden: 20 - heads}}", "hidden: (-dim + 80) // 4"),
    ("m: {type: linear, out: heads * head_dim}", "out: dim"),
]


@pytest.mark.parametrize(("nodes", "written"), WIDE)
def test_a_slot_that_is_used_at_two_widths_is_written_once(nodes: str, written: str) -> None:
    """Queries of four heads and keys of two, whose numbers follow from an axis that each block is given."""
    one = composer.load(TWO_WIDTHS.replace("NODES", nodes))
    expanded = one.expand()
    assert written in expanded
    assert one.diff(composer.load(expanded)).equal


IN_A_DEFINITION = [
    "m: {graph: {a: {type: linear, out: 8}, b: {type: ffn, hidden: heads}, c: {type: linear, out: head_dim * heads}}}",
    "m: {type: layernorm, eps: 1e-3 / heads}",
    "m: {compute: x * heads ** -0.5, in: {x: joined}}",
    "m: {scan: time, graph: {a: {type: linear, out: heads * head_dim}}}",
    "m: {repeat: 2, graph: {a: {type: ffn, hidden: 3 * heads}, s: {scan: time, graph: {z: {type: rmsnorm, eps: 1 / heads}}}}}",
    "m: {type: residual, norm: {type: layernorm, eps: 0.1 ** heads}, body: {type: ffn, hidden: 2 * heads}}",
]


@pytest.mark.parametrize("nodes", IN_A_DEFINITION)
@pytest.mark.parametrize("axis", ["heads", "dim", "hidden"])
@pytest.mark.parametrize("slot", ["over_heads", "{type: residual, body: over_heads}"])
def test_a_slot_whose_numbers_follow_from_axes_of_a_definition_is_written_with_it(nodes: str, axis: str, slot: str) -> None:
    """What a block is given is as wide in both uses, or it is along another axis; also where a name means something else too."""
    nodes = re.sub(r"\bheads\b", axis, nodes)
    text = TWO_WIDTHS.replace("batch, heads", f"batch, {axis}").replace("NODES", nodes)
    one = composer.load(text.replace("qk_norm: over_heads", f"qk_norm: {slot}"))
    assert one.diff(composer.load(one.expand())).equal


def test_a_slot_is_written_with_a_definition_where_a_param_hides_its_axis() -> None:
    """`dim` is a param here, so that outside of the definition it is no axis."""
    one = composer.load(TWO_WIDTHS.replace("NODES", WIDE[1][0]).replace("width", "dim"))
    expanded = one.expand()
    assert "blocks:" in expanded
    assert one.diff(composer.load(expanded)).equal


@pytest.mark.parametrize("terms", [1, 6])
def test_an_expression_stays_short_enough_to_be_read(terms: int) -> None:
    """With short names of its values, or else with each pass by itself, as the name of a node can be as long as the line."""
    value = " + ".join(["(q // w - k // w + w - 1) * (2 * w - 1) + q % w - k % w"] + ["w * q + w * k + w"] * terms)
    text = f"""
recipe: example
inputs: {{x: "float[batch, time, 16]"}}
graph:
  layers:
    repeat: 2
    each: {{w: [2, 4]}}
    graph:
      relative_distances: {{type: constant, over: {{q: 16, k: 16}}, value: {value}}}
      z: {{type: sum, axis: first, in: relative_distances}}
      y: {{compute: input + 0.01 * float(z)}}
"""
    assert len(value) < 200
    recipe = composer.load(text)
    again = composer.load(recipe.expand())
    assert again.check() == []
    assert again.diff(recipe).equal
