#include "launcher/report/style.h"

namespace ptrain::report {

const std::string_view kStyle = R"css(
:root { color-scheme: light dark; --page: #f6f7f9; --card: #fff; --ink: #1b1f24; --quiet: #5a6472;
  --edge: #dde1e7; --grid: #e8ebf0; --good: #1a7f37; --bad: #c4262e;
  --predicted: #9aa5b4; --measured: #2563c9; --second: #c2410c;
  --c1: #2563c9; --c2: #0f8a75; --c3: #8b5cc9; --c4: #d99000; --c5: #c2410c; --c6: #b03a7c; --c7:
  #7b8593; }
@media (prefers-color-scheme: dark) { :root { --page: #111418; --card: #1a1f26; --ink: #e6e9ee;
  --quiet: #9aa5b4; --edge: #2d343e; --grid: #272d36; --good: #4cc26a; --bad: #ff6b70;
  --predicted: #5e6978; --measured: #6ea3ff; --second: #ff9259;
  --c1: #6ea3ff; --c2: #3fc2a9; --c3: #b793ee; --c4: #f0b73d; --c5: #ff9259; --c6: #e57ab4; --c7:
  #8b95a3; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); overflow-wrap: anywhere;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 20px 16px 48px; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 19px; margin: 0 0 12px; }
h3 { font-size: 15px; margin: 0 0 2px; } h4 { font-size: 13px; margin: 14px 0 4px; }
section { background: var(--card); border: 1px solid var(--edge); border-radius: 8px;
  padding: 16px; margin-top: 16px; }
.state { margin: 0; padding-left: 10px; border-left: 4px solid var(--bad); }
.state.good { border-color: var(--good); }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr)); gap: 10px
  20px;
  margin: 0; }
.facts dt { color: var(--quiet); font-size: 12px; } .facts dd { margin: 0; }
.note, .axis { color: var(--quiet); font-size: 13px; margin: 4px 0 8px; } .axis { text-align:
  center; }
.grid2 { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr));
  gap: 24px; }
figure { margin: 0; min-width: 0; }
.legend { margin: 0 0 8px; font-size: 13px; color: var(--quiet); }
.legend span { margin-right: 12px; white-space: nowrap; }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right:
  5px; }
.chart { position: relative; height: 220px; margin: 6px 14px 24px 58px; }
.chart svg { width: 100%; height: 100%; overflow: visible; display: block; }
.chart path { fill: none; vector-effect: non-scaling-stroke; }
.chart .grid { stroke: var(--grid); stroke-width: 1; }
.chart .mark { stroke: var(--quiet); stroke-width: 1; stroke-dasharray: 4 4; }
.chart .line { stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round; }
.chart .dots { stroke-width: 8; stroke-linecap: round; }
path.first { stroke: var(--measured); } path.second { stroke: var(--second); }
i.first { background: var(--measured); } i.second { background: var(--second); }
.chart span { position: absolute; font-size: 12px; line-height: 1; color: var(--quiet);
  white-space: nowrap; }
.chart .y { right: 100%; margin-right: 8px; transform: translateY(-50%); }
.chart .x { top: 100%; margin-top: 7px; transform: translateX(-50%); }
.chart .at { top: 2px; margin-left: 4px; max-width: 40%; overflow: hidden; text-overflow:
  ellipsis; }
.bars { display: grid; grid-template-columns: minmax(90px, 150px) minmax(0, 1fr) minmax(70px,
  220px);
  gap: 8px 12px; font-size: 13px; align-items: center; }
.bars .about { color: var(--quiet); }
.bar { display: flex; align-items: center; gap: 6px; height: 16px; font-size: 12px; white-space:
  nowrap; }
.bar i { height: 10px; border-radius: 2px; flex: none; min-width: 2px; }
i.predicted { background: var(--predicted); } i.measured { background: var(--measured); }
.wide { overflow-x: auto; margin-top: 10px; }
.tracks { min-width: 560px; }
.lanes { display: flex; } .lanes svg { flex: 1; min-width: 0; background: var(--page);
  border-radius: 4px; }
.words { flex: none; width: 76px; font-size: 12px; color: var(--quiet); }
.words span { display: block; height: 20px; line-height: 18px; }
rect.c1 { fill: var(--c1); } rect.c2 { fill: var(--c2); } rect.c3 { fill: var(--c3); } rect.c4 {
  fill: var(--c4); }
rect.c5 { fill: var(--c5); } rect.c6 { fill: var(--c6); } rect.c7 { fill: var(--c7); }
i.c1 { background: var(--c1); } i.c2 { background: var(--c2); } i.c3 { background: var(--c3); }
i.c4 { background: var(--c4); } i.c5 { background: var(--c5); } i.c6 { background: var(--c6); }
  i.c7 { background: var(--c7); }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { text-align: left; vertical-align: top; padding: 4px 12px 4px 0; border-bottom: 1px solid
  var(--edge); }
th { color: var(--quiet); font-weight: 600; white-space: nowrap; } td:not(:last-child) {
  white-space: nowrap; }
td:last-child { white-space: pre-wrap; min-width: 260px; }
@media (max-width: 700px) {
  main { padding: 12px 8px 32px; } section { padding: 12px; }
  .bars { gap: 1px; }
  .bars .about { grid-column: 1 / -1; margin-bottom: 8px; }
  .bars .name, .bars .pair { grid-column: 1 / -1; }
}
)css";

}  // namespace ptrain::report
