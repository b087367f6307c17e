// Search in pages opened as files: browsers start no worker there, so a hidden frame does its work.
// The theme takes this for its own shim of the same name, which it would fetch from the network.
class FrameWorker extends EventTarget {
  constructor(url) {
    super();
    this.frame = document.createElement("iframe");
    this.frame.hidden = true;
    this.ready = new Promise((resolve) => this.frame.addEventListener("load", resolve));
    addEventListener("message", (event) => {
      if (event.source === this.frame.contentWindow) {
        this.dispatchEvent(new MessageEvent("message", { data: event.data }));
      }
    });
    this.frame.srcdoc = `<body><script>
      postMessage = (data) => parent.postMessage(data, "*");
      importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((resolve) => {
        const script = Object.assign(document.createElement("script"), { src: url, onload: resolve });
        document.body.append(script);
      })), Promise.resolve());
    </script><script src="${url}"></script>`;
    document.body.append(this.frame);
  }

  postMessage(data) {
    this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
  }

  terminate() {
    this.frame.remove();
  }
}

if (location.protocol === "file:") window.Worker = FrameWorker;
