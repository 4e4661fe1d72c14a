"""The style of a report: light and dark, on wide screens and on phones."""

STYLE = """
:root { color-scheme: light dark; --text: #1c2330; --soft: #5b6575; --page: #fff; --card: #f4f6f9;
  --line: #d5dae2; --accent: #1f6fb2; --wrong: #b3381e; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e4e8ef; --soft: #9ba6b6; --page: #14181f; --card: #1d232d; --line: #353e4c;
    --accent: #6db3ee; --wrong: #ff8a70; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 76rem; color: var(--text);
  background: var(--page); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .5rem; border-top: 1px solid var(--line);
  padding-top: 1rem; }
h3 { font-size: 1.1rem; margin: 1.5rem 0 .5rem; }
h4 { font-size: 1rem; margin: .2rem 0; }
h5 { font-size: .85rem; font-weight: 600; margin: .8rem 0 .2rem; }
h5 span { color: var(--soft); font-weight: 400; }
p { margin: .4rem 0; max-width: 46rem; }
a { color: var(--accent); }
nav a { display: inline-block; margin-right: 1rem; }
.note, .answer, .caption, figcaption, small { color: var(--soft); }
.answer, .note, figcaption, .caption { font-size: .85rem; }
img { image-rendering: pixelated; display: block; border: 1px solid var(--line); max-width: 100%; }
img.small { height: 6.5rem; } img.middle { height: 10rem; } img.large { height: 16rem; }
.heads figure { max-width: 100%; } .heads img { width: 100%; aspect-ratio: 1; }
.heads .small { width: 6.5rem; } .heads .middle { width: 10rem; } .heads .large { width: 16rem; }
figure { margin: 0; }
.heads .map { max-width: 100%; overflow-x: auto; }
.axes { font: 11px ui-monospace, monospace; fill: var(--text); max-width: none; }
.axes .row { text-anchor: end; }
.heads { display: flex; flex-wrap: wrap; gap: .6rem; }
.heads figcaption { line-height: 1.3; }
.heads figcaption b { display: block; color: var(--text); }
.sample { margin: .5rem 0; }
@media (min-width: 50rem) {
  .beside { display: grid; grid-template-columns: max-content 1fr; gap: 1rem; }
  .beside .sample { margin: 0; max-width: 17rem; }
}
.cards { display: grid; gap: .8rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 17rem), 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: .6rem .8rem; min-width: 0; }
.legend { list-style: none; padding: 0; font-size: .85rem; color: var(--soft); }
.legend img { display: inline-block; width: 6rem; height: .8rem; vertical-align: middle; }
.scroll { overflow-x: auto; margin: 0 0 1.2rem; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums;
  overflow-wrap: normal; }
th, td { padding: .15rem .7rem .15rem 0; white-space: pre; border-bottom: 1px solid var(--line); }
th { font-weight: 600; vertical-align: bottom; }
.word { text-align: left; }
.word > span { display: inline-block; padding-left: calc(var(--indent) * 1em); }
.number { text-align: right; }
.confusion td, .confusion th { padding: 0; min-width: 2.3rem; text-align: center; }
.confusion .word { padding-right: .7rem; text-align: right; font-weight: 600; }
.confusion th { padding: 0 .3rem; white-space: normal; }
.confusion b { display: block; padding: .15rem .3rem; font-weight: 400; }
.bar { width: 9rem; height: .6rem; background: var(--card); border: 1px solid var(--line); }
.bar span { display: block; height: 100%; background: var(--accent); }
details { margin: .6rem 0; } summary { cursor: pointer; font-weight: 600; }
.tokens { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem; padding: 0; margin: 0; }
.tokens li { border: 1px solid var(--line); border-radius: 4px; padding: 0 .35rem; min-width: 0;
  text-align: center; line-height: 1.3; }
.tokens small, .tokens b, .tokens i { display: block; }
.tokens small { font-size: .7rem; } .tokens i { font-size: .75rem; color: var(--accent); }
.tokens .wrong { border-color: var(--wrong); } .tokens .wrong i { color: var(--wrong); }
.worst { list-style: none; padding: 0; display: grid; gap: .8rem;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); }
.worst li { background: var(--card); border: 1px solid var(--line); border-radius: 6px;
  padding: .6rem; min-width: 0; }
.tokens .token { background: var(--page); }
.tokens .padding { background: #969696; border-style: dashed; }
.tokens .padding * { color: #14181f; }
@media (max-width: 40rem) {
  table { font-size: .7rem; } th, td { padding-right: .35rem; }
  td small { display: block; overflow-wrap: anywhere; }
  .word > span { padding-left: calc(var(--indent) * .5em); }
  .number { white-space: normal; }
  td.word:first-child { white-space: normal; min-width: 6.8rem; }
  .confusion td, .confusion th { min-width: 1.7rem; }
  .bar { width: 3rem; }
}
"""
