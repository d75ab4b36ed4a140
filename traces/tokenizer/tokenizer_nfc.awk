# SPDX-License-Identifier: Apache-2.0
# Makes tokenizer_nfc_tables.c from the Unicode character database:
#   awk -f traces/tokenizer/tokenizer_nfc.awk CompositionExclusions.txt UnicodeData.txt
function hex(s,   i, v) {
    v = 0
    for (i = 1; i <= length(s); i++)
        v = v * 16 + index("0123456789ABCDEF", substr(s, i, 1)) - 1
    return v
}
BEGIN { n = 0; r = 0; last = -2 }
FILENAME ~ /CompositionExclusions/ {
    if (FNR == 1) { version = $0; sub(/.*-/, "", version); sub(/\.txt.*/, "", version) }
    sub(/[ \t]*#.*/, "")
    if ($0 != "")
        excluded[$1] = 1
    next
}
{
    split($0, f, ";")
    cp = hex(f[1])
    if (f[4] + 0) {
        class_of[f[1]] = f[4]
        if (cp == last + 1 && f[4] == rc[r])
            rhi[r] = cp
        else {
            r++
            rlo[r] = rhi[r] = cp
            rc[r] = f[4]
        }
        last = cp
    }
    if (f[6] != "" && f[6] !~ /</) {
        k = split(f[6], d, " ")
        n++
        from[n] = f[1]
        a[n] = d[1]
        b[n] = k > 1 ? d[2] : "0"
    }
}
function add(item) {
    if (length(line) + length(item) > 95) { print "    " line; line = "" }
    line = line (line == "" ? "" : " ") item
}
function close_table(name) {
    print "    " line "\n};\nconst size_t kvc_nfc_n_" name " = sizeof(kvc_nfc_" name ") / sizeof(kvc_nfc_" name "[0]);\n"
    line = ""
}
function short(h) { h = tolower(h); sub(/^0+/, "", h); return "0x" h }
END {
    print "/* SPDX-License-Identifier: Apache-2.0"
    print " * Canonical decompositions and combining classes of Unicode " version "."
    print " * Made by tokenizer_nfc.awk; do not edit. */"
    print "#include \"traces/tokenizer/tokenizer_nfc_tables.h\"\n"
    print "const struct kvc_nfc_single kvc_nfc_singles[] = {"
    for (i = 1; i <= n; i++)
        if (b[i] == "0")
            add(sprintf("{%s,%s},", short(from[i]), short(a[i])))
    close_table("singles")
    print "const struct kvc_nfc_pair kvc_nfc_pairs[] = {"
    for (i = 1; i <= n; i++) {
        # listed exclusions and what does not begin with a starter never compose
        no = excluded[from[i]] || class_of[from[i]] || class_of[a[i]]
        if (b[i] != "0")
            add(sprintf("{%s,%s,%s,%d},", short(from[i]), short(a[i]), short(b[i]), !no))
    }
    close_table("pairs")
    print "const struct kvc_nfc_class kvc_nfc_classes[] = {"
    for (i = 1; i <= r; i++)
        add(sprintf("{0x%x,0x%x,%d},", rlo[i], rhi[i], rc[i]))
    close_table("classes")
}
