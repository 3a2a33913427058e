// What a saved panel holds: a few lines that fetch the bundle from the kernel, once a page.
const loaded = (globalThis.__healkitPanels ??= new Map());

function bundle(model) {
  const hash = model.get("bundle");
  return new Promise((resolve, reject) => {
    if (loaded.has(hash)) return resolve(loaded.get(hash));
    const take = (content, buffers) => {
      if (content?.bundle !== hash) return;
      model.off("msg:custom", take);
      if (!loaded.has(hash)) {
        const url = URL.createObjectURL(new Blob([buffers[0]], { type: "text/javascript" }));
        loaded.set(hash, import(url).finally(() => URL.revokeObjectURL(url)));
      }
      resolve(loaded.get(hash));
    };
    model.on("msg:custom", take);
    try {
      model.send({ op: "bundle" });
    } catch (error) {
      reject(error);
    }
  });
}

async function render({ model, el }) {
  const waiting = document.createElement("div");
  waiting.textContent = "healkit: waiting for the kernel…";
  waiting.style.cssText = "font:13px sans-serif;padding:4px 0;opacity:.8";
  el.append(waiting);
  try {
    const { open } = await bundle(model);
    waiting.remove();
    return open(model, el);
  } catch (error) {
    waiting.textContent = `healkit: this panel could not be opened (${error}). The output above shows everything it knew.`;
  }
}

export default { render };
