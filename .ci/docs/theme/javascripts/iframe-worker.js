// Browsers start no worker from a file. The search of the site is one, so on file: it runs in a hidden frame instead, with the same
// interface. The theme's worker checks for the name IFrameWorker.
class IFrameWorker extends EventTarget {
  constructor(url) {
    super()
    const frame = document.createElement("iframe")
    frame.hidden = true
    document.body.append(frame)
    const inside = frame.contentWindow
    this.ready = new Promise(resolve => {
      this.loaded = () => resolve(inside)
    })
    this.answer = data => this.dispatchEvent(new MessageEvent("message", { data }))
    inside.worker = this
    inside.document.write(`<script>postMessage = data => worker.answer(data)</script>
      <script src="${url}" onload="worker.loaded()"></script>`)
    inside.document.close()
  }

  postMessage(data) {
    this.ready.then(inside => inside.dispatchEvent(new MessageEvent("message", { data })))
  }

  terminate() {}
}

if (location.protocol === "file:") window.Worker = window.IFrameWorker = IFrameWorker
