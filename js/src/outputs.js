// What a tool displayed. It was cleaned in the kernel: only images as data and HTML without anything active come here.
import { block, h } from "./dom.js";

const IMAGES = ["image/png", "image/jpeg", "image/gif"];

function bundle(data) {
  for (const kind of IMAGES) {
    if (data[kind]) {
      const source = `data:${kind};base64,${data[kind].replace(/\s/g, "")}`;
      return h("img", { class: "hk-image", src: source, alt: data["text/plain"] ?? "an image that the tool displayed" });
    }
  }
  if (data["text/html"]) {
    const place = h("div", { class: "hk-html", tabindex: "0" });
    place.innerHTML = data["text/html"];
    return place;
  }
  return block(data["text/markdown"] ?? data["text/plain"] ?? "");
}

export function outputs(list) {
  return (list ?? []).map((output) =>
    output.kind === "stream"
      ? block(output.text, { class: `hk-block${output.name === "stderr" ? " hk-stderr" : ""}` })
      : bundle(output.data),
  );
}
