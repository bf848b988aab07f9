"""The page that `share` writes. @NAME@ are its parts.

Invariant: it loads nothing from anywhere; without scripts the picture and all numbers are there.
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>@TITLE@</title>
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<style>
body{font:14px/1.45 system-ui,sans-serif;margin:16px;color:#1c1c1c;background:#fff;max-width:1100px}
#view{position:relative;overflow:hidden;width:100%;height:420px;border:1px solid #bbb;background:#ddd}
#view{cursor:grab;touch-action:none}
#view img{position:absolute;left:0;top:0;transform-origin:0 0;image-rendering:pixelated;user-select:none}
#at{font:12px ui-monospace,monospace;min-height:1.5em;margin:4px 0}
table{border-collapse:collapse}th{text-align:left;font-weight:600;padding:1px 14px 1px 0}td{padding:1px 0}
pre{background:#f4f4f2;padding:10px;overflow:auto;font-size:12px}ul{padding-left:18px}
</style></head><body>
<h1 style="font-size:18px">@TITLE@</h1>
<div id="view" tabindex="0" aria-label="the mask: queries down, keys right; + and - zoom, arrows move, 0 shows all"
><img id="pic" alt="the mask" draggable="false" src="data:image/png;base64,@PICTURE@"></div>
<div id="at">queries down, keys to the right. Wheel or + and - zoom, drag or arrows move, 0 shows all.</div>
<table>@NUMBERS@</table>
<h2 style="font-size:15px">Code</h2><pre>@CODE@</pre>
<h2 style="font-size:15px">Provenance</h2><ul>@PROVENANCE@</ul>
<script type="application/json" id="data">@DATA@</script>
<script>
"use strict";
(function () {
  const said = JSON.parse(document.getElementById("data").textContent);
  const packed = Uint8Array.from(atob("@SHARES@"), (c) => c.charCodeAt(0)), view = document.getElementById("view");
  const pic = document.getElementById("pic"), at = document.getElementById("at");
  let zoom = 1, x = 0, y = 0, drag = null, shares = null;
  new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer()
    .then((bytes) => { shares = new Uint8Array(bytes); }).catch(() => {});
  const draw = () => { pic.style.transform = `translate(${x}px,${y}px) scale(${zoom})`; };
  const all = () => {
    zoom = Math.min(view.clientWidth / said.width, view.clientHeight / said.height); x = y = 0; draw();
  };
  const by = (factor, px, py) => {
    const next = Math.min(Math.max(zoom * factor, 0.02), 200);
    x = px - (px - x) * next / zoom; y = py - (py - y) * next / zoom; zoom = next; draw();
  };
  const tell = (px, py) => {
    const col = Math.floor((px - x) / zoom), row = Math.floor((py - y) / zoom);
    if (col < 0 || row < 0 || col >= said.width || row >= said.height) { return; }
    const part = (first, n, end, pixels) => {
      const edge = (i) => first + Math.floor(i * (end - first) / pixels), from = edge(n), to = edge(n + 1) - 1;
      return from === to ? `${from}` : `${from} to ${to}`;
    };
    const share = shares === null ? null : shares[row * said.width + col];
    const percent = (100 * (share - 1) / 253).toFixed(1);
    const word = share === null ? "" : share === 0 ? "nothing kept" : share === 255 ? "kept" : `${percent}% kept`;
    const q = part(said.rows[0], row, said.rows[1], said.height);
    const kv = part(said.cols[0], col, said.cols[1], said.width);
    at.textContent = `q ${q}, kv ${kv}: ${word}`;
  };
  const place = (event) => {
    const box = view.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const wheel = (event) => { event.preventDefault(); by(event.deltaY < 0 ? 1.25 : 0.8, ...place(event)); };
  view.addEventListener("wheel", wheel, { passive: false });
  view.addEventListener("pointerdown", (event) => {
    drag = [event.clientX - x, event.clientY - y]; view.setPointerCapture(event.pointerId);
  });
  view.addEventListener("pointerup", () => { drag = null; });
  view.addEventListener("pointermove", (event) => {
    if (drag) { x = event.clientX - drag[0]; y = event.clientY - drag[1]; draw(); }
    tell(...place(event));
  });
  view.addEventListener("keydown", (event) => {
    const mid = [view.clientWidth / 2, view.clientHeight / 2];
    const move = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
    if (event.key === "+" || event.key === "=") { by(1.25, ...mid); }
    else if (event.key === "-") { by(0.8, ...mid); }
    else if (event.key === "0") { all(); }
    else if (move[event.key]) { x += move[event.key][0]; y += move[event.key][1]; draw(); event.preventDefault(); }
  });
  all();
}());
</script></body></html>
"""
