#include "base/yaml.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

namespace gantry::base {

namespace {

json::value one(std::string_view text) {
    auto documents = parse_yaml(text, "f.yaml");
    if (!documents) return json::value("error: " + documents.error().message);
    if (documents->size() != 1) return json::value("documents: " + std::to_string(documents->size()));
    return documents->front().value;
}

json::value js(std::string_view text) { return *parse_json(text, "expected"); }

std::string fault(std::string_view text) {
    auto documents = parse_yaml(text, "f.yaml");
    return documents ? "accepted" : documents.error().message;
}

std::string repeat(std::string_view piece, std::size_t times) {
    std::string out;
    out.reserve(piece.size() * times);
    for (std::size_t i = 0; i < times; ++i) out += piece;
    return out;
}

long peak_kib() {
    struct rusage usage {};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

} // namespace

TEST(yaml, reads_a_pod_with_types) {
    EXPECT_EQ(
        one("apiVersion: v1\nkind: Pod\nmetadata: {name: web, labels: {\"8080\": 'on'}}\nspec:\n"
            "  hostNetwork: yes\n  containers:\n  - name: c\n    image: nginx:1.25\n    ports: [{containerPort: 80}]\n"
            "    command:\n    - \"sh\"\n    - -c\n    - |\n      echo hi\n      sleep 1\n"),
        js(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","labels":{"8080":"on"}},"spec":{"hostNetwork":true,
                  "containers":[{"name":"c","image":"nginx:1.25","ports":[{"containerPort":80}],
                  "command":["sh","-c","echo hi\nsleep 1\n"]}]}})"));
}

TEST(yaml, reads_json_as_the_subset_it_is) {
    EXPECT_EQ(one("{\n\t\"a\": [1, 2.5, true, null, \"x\\u00e9\\n\"],\n\t\"b\": {\"c\": {}}\n}\n"),
              js(R"({"a":[1,2.5,true,null,"xé\n"],"b":{"c":{}}})"));
}

TEST(yaml, folds_and_keeps_block_scalars) {
    EXPECT_EQ(one("a: |\n  x\n  y\nb: >-\n  x\n  y\nc: |+\n  x\n\n"), js(R"({"a":"x\ny\n","b":"x y","c":"x\n\n"})"));
}

TEST(yaml, reads_every_document_of_a_stream) {
    auto documents = parse_yaml("# head\na: 1\n---\n---\n- b\n...\n", "f.yaml");
    ASSERT_TRUE(documents) << documents.error().message;
    ASSERT_EQ(documents->size(), 3u);
    EXPECT_EQ((*documents)[0].value, js(R"({"a":1})"));
    EXPECT_TRUE((*documents)[1].value.is_null());
    EXPECT_EQ((*documents)[2].value, js(R"(["b"])"));
}

TEST(yaml, has_no_document_in_an_empty_or_commented_out_file) {
    for (const auto* text : {"", "\n\n", "# nothing\n"}) {
        auto documents = parse_yaml(text, "f.yaml");
        ASSERT_TRUE(documents) << documents.error().message;
        for (const auto& document : *documents) EXPECT_TRUE(document.value.is_null());
    }
}

TEST(yaml, knows_the_line_of_every_node) {
    auto documents =
        parse_yaml("# c\nplugins:\n- name: a\n  use: x\n- name: b\n  list:\n    - 1\n    - {k: v}\n", "f.yaml");
    ASSERT_TRUE(documents) << documents.error().message;
    const auto& lines = documents->front().lines;
    const std::map<std::string, int> expected = {{"plugins", 2},
                                                 {"plugins[0]", 3},
                                                 {"plugins[0].name", 3},
                                                 {"plugins[0].use", 4},
                                                 {"plugins[1]", 5},
                                                 {"plugins[1].name", 5},
                                                 {"plugins[1].list", 6},
                                                 {"plugins[1].list[0]", 7},
                                                 {"plugins[1].list[1]", 8},
                                                 {"plugins[1].list[1].k", 8}};
    EXPECT_EQ(lines, expected);
}

TEST(yaml, counts_lines_across_documents) {
    auto documents = parse_yaml("a: 1\n---\nb: 2\n", "f.yaml");
    ASSERT_TRUE(documents);
    EXPECT_EQ(documents->at(1).lines.at("b"), 3);
}

TEST(yaml, takes_keys_as_written) {
    EXPECT_EQ(one("&k 80: a\non: b\n1.50: c\nx: {*k : d}\n"), js(R"({"80":"a","on":"b","1.50":"c","x":{"80":"d"}})"));
    EXPECT_EQ(fault("a: &k [1]\nx: {*k : d}\n"), "f.yaml:2: only a string can be a key by alias");
}

TEST(yaml, expands_aliases_and_merge_keys) {
    EXPECT_EQ(
        one("base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nboth: {<<: [{z: 4, y: 5}, *b], w: 6}\nsame: *b\n"),
        js(R"({"base":{"x":1,"y":2},"use":{"x":1,"y":3},"both":{"w":6,"x":1,"y":5,"z":4},"same":{"x":1,"y":2}})"));
    EXPECT_EQ(one("{\"<<\": 1}"), js(R"({"<<":1})"));
    EXPECT_EQ(fault("a: {<<: 1}\n"), "f.yaml:1: a merge key (<<) takes a map or a list of maps");
}

TEST(yaml, names_file_and_line_of_a_fault) {
    EXPECT_EQ(fault("a: 1\nb: 2\na: 3\n"), "f.yaml:3: key \"a\" is given twice, first in line 1");
    EXPECT_EQ(fault("x:\n  1: a\n  \"1\": b\n"), "f.yaml:3: key \"1\" is given twice, first in line 2");
    EXPECT_EQ(fault("a: 1\nb: {c: .nan}\n").substr(0, 15), "f.yaml:2: \".nan");
    EXPECT_EQ(fault("a:\n\tb: 1\n"), "f.yaml:2: a tab cannot indent YAML; use spaces");
    EXPECT_EQ(fault("a: *nope\n").substr(0, 9), "f.yaml:1:");
    EXPECT_EQ(fault("a: 1\n? [x]\n: 1\n"), "f.yaml:2: a list or map cannot be a key");
    EXPECT_EQ(fault("~: 1\n"), "f.yaml:1: null cannot be a key");
    EXPECT_EQ(fault("a: !thing {}\n").substr(0, 9), "f.yaml:1:");
}

TEST(yaml, refuses_what_is_cut_off_or_followed_by_rubbish) {
    for (const auto* text : {"a: [1, 2", "a: {b: 1", "a: \"x", "a: 'x", "a: 1\n]\n", "a: 1\n}\n", "{a: 1} b\n",
                             "[1] 2\n", "a: b: c\n", "a: 1\n b: 2\n", "a: [1}\n", "- 1\nb: 2\n", "a: 1\n- 2\n",
                             "\"a\" \"b\"\n", "a: @x\n", "a: `x\n", "a: \"\\q\"\n"})
        EXPECT_NE(fault(text), "accepted") << text;
}

TEST(yaml, refuses_bytes_that_are_no_text) {
    EXPECT_EQ(fault(std::string_view("a: 1\nb: \0x\n", 11)), "f.yaml:2: a NUL byte; YAML is text");
    EXPECT_EQ(fault("a: \x04\n"), "f.yaml:1: a control character; YAML is text");
    EXPECT_EQ(fault("a: \xff\xfe\n"), "f.yaml:1: not UTF-8");
    EXPECT_EQ(fault("a: \xed\xa0\x80\n"), "f.yaml:1: not UTF-8");
    EXPECT_EQ(fault("a: \xc0\xaf\n"), "f.yaml:1: not UTF-8");
    EXPECT_EQ(fault("a: \xe2\x82"), "f.yaml:1: not UTF-8");
    EXPECT_EQ(one("\xef\xbb\xbf"
                  "a: \xf0\x9f\x9a\x80\n"),
              js("{\"a\":\"\xf0\x9f\x9a\x80\"}"));
}

TEST(yaml, refuses_more_than_ten_megabytes) {
    EXPECT_EQ(fault("a: " + std::string(10u << 20, 'x')), "f.yaml: 10485763 bytes; the limit is 10485760");
    EXPECT_EQ(one("a: " + std::string((10u << 20) - 3, 'x')).as_object().at("a").as_string().size(), (10u << 20) - 3);
}

TEST(yaml, bounds_depth_however_it_is_made) {
    EXPECT_EQ(one(repeat("[", 64) + repeat("]", 64)).is_array(), true);
    EXPECT_EQ(fault(repeat("[", 65) + repeat("]", 65)), "f.yaml:1: nested deeper than 64");
    for (const auto* piece :
         {"[", "{", "[{", "- ", "? ", "{a: ", "[\n", "{?\n", "- [", "a: {", "!a [", "&a [", ": ", "-\t", "[? "})
        EXPECT_NE(fault(repeat(piece, 1'000'000)), "accepted") << piece;
    std::string stairs;
    for (int i = 0; i < 3000; ++i) stairs += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
    EXPECT_EQ(fault(stairs), "f.yaml:65: nested deeper than 64");
}

TEST(yaml, bounds_alias_expansion) {
    std::string laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n";
    for (int i = 1; i < 12; ++i) {
        const std::string below = "*a" + std::to_string(i - 1);
        laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + repeat(below + ", ", 8) + below + "]\n";
    }
    EXPECT_NE(fault(laughs).find("nodes after alias expansion"), std::string::npos) << fault(laughs);

    const std::string big = "a: &a " + std::string(1u << 20, 'x') + "\nb: [" + repeat("*a, ", 1000) + "*a]\n";
    EXPECT_NE(fault(big).find("bytes after alias expansion"), std::string::npos) << fault(big);
    EXPECT_EQ(fault("a: &a [1, *a]\n"), "f.yaml:1: an alias to a node that contains it");

    std::string many; // the bounds are the stream's, not each document's
    for (int i = 0; i < 400; ++i) many += "a: &a [" + repeat("x, ", 500) + "x]\nb: [*a, *a, *a]\n---\n";
    EXPECT_NE(fault(many).find("nodes after alias expansion"), std::string::npos) << fault(many);
}

TEST(yaml, bounds_what_paths_of_lines_may_take) {
    const std::string key(1024, 'k');
    EXPECT_EQ(fault("? " + key + "k\n: 1\n"), "f.yaml:1: a key longer than 1024 bytes");
    EXPECT_NE(fault(key + ": [" + repeat("1, ", 100'000) + "1]\n"), "accepted");
}

TEST(yaml, stays_small_and_quick_on_hostile_repetition) {
    const long before = peak_kib();
    for (const auto* piece : {"[",   "[],",   "{},", "[\n",   "a,",    "&",    "*",        "!",    "!<",   "|",
                              ">",   "'",     "\"",  "\\",    "#",     "%",    "?",        ":",    "-",    "\t",
                              " ",   "\r",    "\n",  "---\n", "...\n", "a: ",  "a:\n",     "- - ", "\"\\", "''",
                              "a\n", "? a\n", "!!",  "&a ",   "*a ",   "| \n", "\xc2\xa0", "[a]: "})
        (void)fault(repeat(piece, 300'000));
    EXPECT_LT(peak_kib() - before, 400 * 1024);
}

} // namespace gantry::base
