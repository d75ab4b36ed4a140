/* SPDX-License-Identifier: Apache-2.0
 * The page's looks: light and dark, screen, phone and paper. Nothing is fetched. */
#include "reports/html.h"

#define FONTS                                                                                      \
    "system-ui,-apple-system,\"Segoe UI\",Roboto,\"Noto Sans\",\"Liberation Sans\",Arial,sans-serif"

static const char css[] =
    "*{box-sizing:border-box}"
    "html{-webkit-text-size-adjust:100%}"
    "body{margin:0;background:var(--page);color:var(--ink);font:16px/1.5 " FONTS "}"
    "main{max-width:1040px;margin:0 auto;padding:28px 24px 48px}"
    "h1{font-size:1.05rem;font-weight:600;color:var(--muted);margin:0 0 10px}"
    "h2{font-size:1.2rem;margin:0 0 4px;line-height:1.3}"
    "h3{font-size:.95rem;margin:18px 0 4px}"
    "p{margin:6px 0;max-width:80ch}"
    ".verdict{font-size:1.9rem;line-height:1.2;font-weight:700;margin:0 0 12px;max-width:none}"
    ".lead p{font-size:1.06rem;margin:8px 0}"
    ".note{color:var(--muted);font-size:.88rem}"
    "section{margin-top:36px;border-top:1px solid var(--grid);padding-top:18px}"
    ".tiles{display:grid;grid-template-columns:repeat(3,1fr);gap:10px;"
    "margin:22px 0 0;padding:0;list-style:none}"
    ".tiles li{background:var(--card);border:1px solid var(--grid);border-radius:8px;"
    "padding:10px 12px}"
    ".tiles b{display:block;font-size:1.4rem;line-height:1.25;font-variant-numeric:tabular-nums}"
    ".tiles span{display:block;font-size:.85rem}.tiles small{color:var(--muted);font-size:.78rem}"
    ".scroll{overflow-x:auto;margin:10px 0}"
    "table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}"
    "th,td{text-align:left;padding:6px 14px 6px 0;vertical-align:top;"
    "border-bottom:1px solid var(--grid)}"
    "th{font-weight:600;color:var(--muted);font-size:.8rem;white-space:nowrap}"
    ".n{text-align:right;white-space:nowrap}"
    "td.name{font-weight:600}"
    ".bar{min-width:110px;width:24%}"
    "td.name{min-width:6em}td small{display:block;font-weight:400;color:var(--muted);"
    "font-size:.82rem;line-height:1.3}.slim{max-width:640px}td.rung{min-width:16em}"
    ".bar i{display:block;height:14px;margin-top:4px;border-radius:2px;min-width:1px;"
    "background:var(--blue)}"
    ".stack{display:flex;height:26px;margin:12px 0 8px;border-radius:3px;overflow:hidden}"
    ".stack i{display:block;height:100%}"
    ".legend{list-style:none;display:flex;flex-wrap:wrap;gap:4px 20px;margin:0;padding:0;"
    "font-size:.9rem}"
    ".legend i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.45em}"
    "figure{margin:12px 0 0}figcaption{color:var(--muted);font-size:.85rem;max-width:80ch}"
    "svg{display:block;width:100%;height:auto;font-family:" FONTS "}"
    ".wide svg{max-width:860px}.narrow{display:none}"
    ".kind{display:inline-block;font-size:.76rem;padding:0 .5em;border:1px solid var(--grid);"
    "border-radius:9px;white-space:nowrap}"
    ".assumed{border-color:var(--orange);color:var(--orange);font-weight:600}"
    ".warn{border-left:4px solid var(--orange);padding:2px 0 2px 12px;margin:10px 0}"
    "code,pre{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,\"Liberation Mono\",monospace;"
    "font-size:.84rem}"
    "pre{overflow-x:auto;background:var(--card);border:1px solid var(--grid);border-radius:6px;"
    "padding:12px}"
    "section>ul{padding-left:1.2em;margin:6px 0;max-width:80ch;font-size:.92rem}"
    "summary{cursor:pointer;font-weight:600}"
    "footer{margin-top:36px;border-top:1px solid var(--grid);padding-top:12px}"
    "@media(max-width:600px){main{padding:18px 14px 32px}.verdict{font-size:1.5rem}"
    ".wide{display:none}.narrow{display:block}.tiles{grid-template-columns:1fr 1fr;gap:8px}"
    ".tiles li{padding:8px 10px}.tiles b{font-size:1.2rem}.bar{min-width:70px}"
    "th,td{padding-right:10px}td:not(.n):not(.bar):not(.name){min-width:9em}}"
    "@media print{html{font-size:11.5px}:root{color-scheme:light}body{font-size:1rem}"
    "main{max-width:none;padding:0}"
    "section{break-inside:avoid;margin-top:18px}.scroll{overflow:visible}"
    ".wide{display:block}.narrow{display:none}"
    "*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}";

static void put_scheme(struct kvc_text *t, bool dark)
{
    kvc_text_addf(t, "color-scheme:%s;--page:%s;--card:%s", dark ? "dark" : "light",
                  dark ? "#15181c" : "#ffffff", dark ? "#1d2126" : "#f6f8fa");
    for (size_t i = 0; i < kvc_n_colours; i++)
        kvc_text_addf(t, ";--%s:%s", kvc_colours[i].name,
                      dark ? kvc_colours[i].dark : kvc_colours[i].light);
}

void kvc_html_style(struct kvc_text *t)
{
    kvc_text_add(t, "<style>:root{");
    put_scheme(t, false);
    kvc_text_add(t, "}@media screen and (prefers-color-scheme:dark){:root{");
    put_scheme(t, true);
    kvc_text_add(t, "}}");
    kvc_text_add(t, css);
    kvc_text_add(t, "</style>\n");
}
