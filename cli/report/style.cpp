#include "cli/report/style.h"

namespace convoy::cli {

// A state's class is its name in kStateNames.
std::string chart_style() {
  return R"css(
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--soft:#59636e;--grid:#d8dee4;--row:#f3f5f7;
--s0:#0072b2;--s1:#d55e00;--s2:#009e73;--s3:#cc79a7;--s4:#b8860b;--s5:#56a0d8;
--forward:#0072b2;--backward_input:#e69f00;--backward_weight:#009e73;--recompute:#56b4e9;--optimizer:#cc79a7;
--starved:#c9d1d9;--transfer:#d55e00;--slot_full:#e0d000;--all_reduce:#8250df;--loader:#8c6d46;--host:#8b949e}
@media (prefers-color-scheme:dark){:root{--paper:#10141a;--ink:#e6edf3;--soft:#9aa5b1;--grid:#2d343d;--row:#191f27;
--s0:#4aa8e0;--s1:#ff8c42;--s2:#2fc598;--s3:#e29ac4;--s4:#e0b040;--s5:#9cd0f5;
--forward:#3a97d3;--starved:#3b444f;--all_reduce:#a58bf0;--loader:#b8956a;--host:#6e7781}}
@media print{:root{color-scheme:light;--paper:#fff;--ink:#000;--soft:#444;--grid:#ccc;--row:#f3f5f7}}
svg{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:var(--ink)}
svg.chart{background:var(--paper)}
svg text.soft{fill:var(--soft)}svg text.end{text-anchor:end}svg text.middle{text-anchor:middle}
svg text.small{font-size:11px}svg text.name{font-weight:600}
svg text.inbox{font-size:11px;text-anchor:middle;fill:#fff;pointer-events:none}
svg text.inbox.dark{fill:#14181d}
.grid{stroke:var(--grid);stroke-width:1}.axis{stroke:var(--soft);stroke-width:1}
.lane{fill:var(--row)}.outline{fill:none;stroke:var(--grid)}
.curve{fill:none;stroke-width:2;stroke-linejoin:round}.faint{fill:none;stroke-width:1;opacity:.35}
.flat{fill:none;stroke-width:1.5;stroke-dasharray:6 4}.error{stroke-width:1.5}
.c0{stroke:var(--s0)}.c1{stroke:var(--s1)}.c2{stroke:var(--s2)}.c3{stroke:var(--s3)}.c4{stroke:var(--s4)}.c5{stroke:var(--s5)}
.f0{fill:var(--s0)}.f1{fill:var(--s1)}.f2{fill:var(--s2)}.f3{fill:var(--s3)}.f4{fill:var(--s4)}.f5{fill:var(--s5)}
.band{opacity:.15}.repeat{opacity:.45}.plan{opacity:.55}.box,.plan{stroke:var(--paper);stroke-width:.6}.thin{stroke:none}
.forward{fill:var(--forward)}.backward_input{fill:var(--backward_input)}.backward_weight{fill:var(--backward_weight)}
.recompute{fill:var(--recompute)}.optimizer{fill:var(--optimizer)}.starved{fill:var(--starved)}.transfer{fill:var(--transfer)}
.slot_full{fill:var(--slot_full)}.all_reduce{fill:var(--all_reduce)}.loader{fill:var(--loader)}.host{fill:var(--host)}
)css";
}

std::string page_style() {
  return R"css(
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
main{max-width:1200px;margin:0 auto;padding:16px 20px 48px}
h1{font-size:1.6rem;line-height:1.25;margin:.4em 0 .2em;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2em 0 .5em;padding-top:.6em;border-top:1px solid var(--grid);overflow-wrap:anywhere}
h3{font-size:1.05rem;margin:1.6em 0 .4em;overflow-wrap:anywhere}
p{margin:.4em 0;max-width:80ch;overflow-wrap:anywhere}.soft{color:var(--soft)}
.verdict{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin:14px 0;padding:0;list-style:none}
.verdict li{background:var(--row);border-radius:8px;padding:10px 12px}
.verdict b{display:block;font-size:1.35rem;line-height:1.2;font-weight:650}
.verdict span{color:var(--soft);font-size:.85rem;display:block;overflow-wrap:anywhere}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:8px 28px}
figure{margin:10px 0;min-width:0}figcaption{color:var(--soft);font-size:.9rem;margin:.2em 0 .4em;max-width:90ch}
figure svg{display:block;width:100%;height:auto}
.scroll{overflow-x:auto;overscroll-behavior-x:contain}.wide svg{min-width:760px}.middle svg{max-width:900px}
table{border-collapse:collapse;font-size:.875rem;font-variant-numeric:tabular-nums;margin:6px 0}
caption{text-align:left;color:var(--soft);padding:2px 0 4px}caption span{display:block;max-width:min(88vw,90ch)}
th,td{padding:3px 10px 3px 0;text-align:right;border-bottom:1px solid var(--grid);vertical-align:top;white-space:nowrap}
th{font-weight:600}th:first-child,td:first-child,.left td,.left th{text-align:left}
.left td{white-space:normal;overflow-wrap:anywhere;min-width:7em}
td i{display:block;font-style:normal;color:var(--soft)}tr.differs td,tr.differs th{background:var(--row)}
tr.sum th,tr.sum td{border-top:2px solid var(--soft)}
details{margin:.3em 0}summary{cursor:pointer;color:var(--soft);font-size:.9rem}
.key{display:inline-block;width:.85em;height:.85em;border-radius:2px;margin-right:.35em;vertical-align:-.05em}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;padding:0;margin:.3em 0;list-style:none;font-size:.875rem}
.kf{background:var(--forward)}.ki{background:var(--backward_input)}.kw{background:var(--backward_weight)}
.k-forward{background:var(--forward)}.k-backward_input{background:var(--backward_input)}.k-backward_weight{background:var(--backward_weight)}
.k-recompute{background:var(--recompute)}.k-optimizer{background:var(--optimizer)}.k-starved{background:var(--starved)}
.k-transfer{background:var(--transfer)}.k-slot_full{background:var(--slot_full)}.k-all_reduce{background:var(--all_reduce)}
.k-loader{background:var(--loader)}.k-host{background:var(--host)}
@media print{.scroll{overflow:visible}main{max-width:none}}
@media (max-width:500px){main{padding:10px 14px 32px}h1{font-size:1.3rem}
.charts svg text,.middle svg text{font-size:17px}.charts svg text.small,.middle svg text.small{font-size:15px}}
)css";
}

}  // namespace convoy::cli
