#include "plugins/source-file/manifest.hpp"

#include <gtest/gtest.h>

#include "plugins/source-file/folder.hpp"

namespace gantry::source_file {

namespace {

namespace json = base::json;

constexpr std::string_view web = "apiVersion: v1\n"
                                 "kind: Pod\n"
                                 "metadata:\n"
                                 "  name: web\n"
                                 "  labels: {app: web}\n"
                                 "spec:\n"
                                 "  containers:\n"
                                 "  - name: nginx\n"
                                 "    image: nginx:1.25\n";

result<std::vector<static_pod>> read(std::string_view text, std::string_view file = "/etc/m/web.yaml",
                                     std::string_view node = "Edge-1") {
    return read_manifest(text, file, node,
                         base::wall_time(std::chrono::seconds(1'700'000'000) + std::chrono::nanoseconds(5)));
}

std::string fault(std::string_view text) {
    const auto pods = read(text);
    return pods ? "accepted" : pods.error().message;
}

static_pod one(std::string_view text, std::string_view file = "/etc/m/web.yaml", std::string_view node = "Edge-1") {
    auto pods = read(text, file, node);
    if (!pods || pods->size() != 1) {
        ADD_FAILURE() << (pods ? "not one pod" : pods.error().message);
        return {};
    }
    return pods->front();
}

std::string with(std::string text, const std::string& what, const std::string& instead) {
    return text.replace(text.find(what), what.size(), instead);
}

} // namespace

TEST(static_pod, gets_what_a_kubelet_adds) {
    const auto pod = one(web);
    EXPECT_EQ(pod.name, "web-edge-1");
    EXPECT_EQ(pod.namespace_, "default");
    const auto value = base::parse_json(pod.json, "pod")->as_object();
    const auto& metadata = value.at("metadata").as_object();
    EXPECT_EQ(metadata.at("name"), "web-edge-1");
    EXPECT_EQ(metadata.at("namespace"), "default");
    EXPECT_EQ(metadata.at("uid"), json::value(pod.uid));
    EXPECT_EQ(metadata.at("labels"), (json::value{{"app", "web"}}));
    const json::value annotations{{"kubernetes.io/config.hash", pod.uid},
                                  {"kubernetes.io/config.source", "file"},
                                  {"kubernetes.io/config.seen", "2023-11-14T22:13:20.000000005Z"}};
    EXPECT_EQ(metadata.at("annotations"), annotations);
    EXPECT_EQ(value.at("spec").at("nodeName"), "Edge-1");
    EXPECT_EQ(value.at("spec").at("tolerations"),
              (json::value(json::array{{{"operator", "Exists"}, {"effect", "NoExecute"}}})));
    EXPECT_EQ(value.at("status"), (json::value{{"phase", "Pending"}}));
}

TEST(static_pod, uid_follows_from_node_file_and_meaning) {
    const auto uid = one(web).uid;
    EXPECT_EQ(uid.size(), 32u);
    EXPECT_EQ(uid.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_EQ(
        one("# a comment\n" + with(std::string(web), "apiVersion: v1\nkind: Pod\n", "kind: Pod\napiVersion: v1\n")).uid,
        uid);
    EXPECT_NE(one(web, "/etc/m/other.yaml").uid, uid);
    EXPECT_NE(one(web, "/etc/m/web.yaml", "edge-2").uid, uid);
    EXPECT_NE(one(with(std::string(web), "1.25", "1.26")).uid, uid);
}

TEST(static_pod, uid_digest_is_fnv_1a) {
    // FNV-1a of 128 bits over `{}host:nfile:f`, computed independently.
    EXPECT_EQ(static_pod_uid(json::object(), "f", "n"), "512e36c2fa39a81179f2d319ba5cb801");
}

TEST(static_pod, keeps_uid_namespace_and_tolerations_of_the_manifest) {
    const auto pod =
        one("apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: sys, uid: abc-1, annotations: {x: z}}\n"
            "spec:\n  tolerations: [{operator: Exists, effect: NoExecute}, {key: k, operator: Exists}]\n"
            "  containers: [{name: c, image: i}]\n");
    EXPECT_EQ(pod.uid, "abc-1");
    EXPECT_EQ(pod.namespace_, "sys");
    const auto value = base::parse_json(pod.json, "pod")->as_object();
    EXPECT_EQ(value.at("spec").at("tolerations").as_array().size(), 2u);
    EXPECT_EQ(value.at("metadata").at("annotations").at("x"), "z");
    EXPECT_EQ(value.at("metadata").at("annotations").at("kubernetes.io/config.hash"), "abc-1");
}

TEST(static_pod, keeps_members_this_version_does_not_know) {
    const auto pod = one(std::string(web) + "  someDay: {a: [1]}\n");
    EXPECT_EQ(base::parse_json(pod.json, "pod")->at("spec").at("someDay"), (json::value{{"a", {1}}}));
}

TEST(manifest, holds_several_documents_and_lists) {
    const auto pods =
        read(std::string(web) + "---\n# nothing\n---\n" +
             "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: "
             "{containers: [{name: c, image: i}]}}\n"
             "- {apiVersion: v1, kind: Pod, metadata: {name: c}, spec: {containers: [{name: c, image: i}]}}\n");
    ASSERT_TRUE(pods) << pods.error().message;
    ASSERT_EQ(pods->size(), 3u);
    EXPECT_EQ((*pods)[2].name, "c-edge-1");
}

TEST(manifest, may_be_json) {
    EXPECT_EQ(one("\n{\n\t\"apiVersion\": \"v1\", \"kind\": \"Pod\",\n\t\"metadata\": {\"name\": \"j\", "
                  "\"annotations\": {\"a\": \"\\ud83d\\ude80 \\/\"}},\n"
                  "\t\"spec\": {\"containers\": [{\"name\": \"c\", \"image\": \"i\"}]}\n}\n")
                  .name,
              "j-edge-1");
}

TEST(manifest, is_empty_when_there_is_nothing_in_it) {
    for (const auto* text : {"", "\n", "---\n", "# only a comment\n", "---\n---\n"}) {
        const auto pods = read(text);
        ASSERT_TRUE(pods) << pods.error().message;
        EXPECT_TRUE(pods->empty());
    }
}

TEST(manifest, names_file_and_line_of_a_fault) {
    EXPECT_EQ(fault("a: [1\n").substr(0, 16), "/etc/m/web.yaml:");
    EXPECT_EQ(fault("- 1\n"), "/etc/m/web.yaml:1: not an object of kind Pod");
    EXPECT_EQ(fault("apiVersion: v1\n\nkind: Service\n"),
              "/etc/m/web.yaml:3: kind \"Service\": only Pod, PodList and List are read here");
    EXPECT_EQ(fault("kind: Pod\napiVersion: apps/v1\n"),
              "/etc/m/web.yaml:2: apiVersion \"apps/v1\" of kind \"Pod\": only v1 is read here");
    const auto image = fault(with(std::string(web), "image: nginx:1.25", "imag: nginx"));
    EXPECT_EQ(image.substr(0, 18), "/etc/m/web.yaml:8:") << image;
    EXPECT_NE(image.find("spec.containers[0].image"), std::string::npos) << image;
    const auto port = fault(std::string(web) + "    ports: [{containerPort: many}]\n");
    EXPECT_EQ(port.substr(0, 19), "/etc/m/web.yaml:10:") << port;
    EXPECT_NE(port.find("containerPort"), std::string::npos) << port;
    const auto listed = fault(
        "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: b}, spec: {containers: "
        "[{name: c, image: i}]}}\n"
        "- apiVersion: v1\n  kind: Pod\n  metadata: {name: c}\n  spec:\n    containers:\n    - {name: C!, image: i}\n");
    EXPECT_EQ(listed.substr(0, 19), "/etc/m/web.yaml:10:") << listed;
}

TEST(manifest, names_the_line_in_json_too) {
    const auto text = fault("{\n \"apiVersion\": \"v1\",\n \"kind\": \"Pod\",\n \"metadata\": {},\n \"spec\": "
                            "{\"containers\": [{\"name\": \"c\", \"image\": \"i\"}]}\n}\n");
    EXPECT_EQ(text.substr(0, 18), "/etc/m/web.yaml:4:") << text;
}

TEST(manifest, is_taken_whole_or_not_at_all) {
    EXPECT_NE(fault(std::string(web) + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec: {}\n"), "accepted");
    EXPECT_EQ(fault(std::string(web) + "---\n" + std::string(web)),
              "/etc/m/web.yaml:14: pod default/web-edge-1 is in this file twice");
}

TEST(manifest, refuses_what_static_pods_cannot_have) {
    EXPECT_NE(fault(std::string(web) + "  resourceClaims: [{name: gpu}]\n").find("resource claims"), std::string::npos);
    EXPECT_NE(fault(std::string(web) +
                    "  volumes:\n  - name: t\n    projected: {sources: [{clusterTrustBundle: {path: x}}]}\n")
                  .find("trust bundles"),
              std::string::npos);
    EXPECT_EQ(fault("apiVersion: v1\nkind: Pod\nmetadata: [a]\n"), "/etc/m/web.yaml:3: must be an object");
    EXPECT_EQ(
        fault("apiVersion: v1\nkind: Pod\nmetadata: {}\nspec: {containers: [{name: c, image: i}]}\n").substr(0, 48),
        "/etc/m/web.yaml:3: a static pod needs a name; me");
}

TEST(manifest_name, leaves_out_hidden_files_and_leftovers_of_editors) {
    for (const auto* name : {"web.yaml", "web.json", "web", "a.yaml.bak", "01-x.yml", "web.yaml.new"})
        EXPECT_TRUE(is_manifest_name(name)) << name;
    for (const auto* name :
         {"", ".", "..", ".web.yaml.swp", ".#web.yaml", "web.yaml~", "#web.yaml#", "x.swp", "x.swx", "web.yaml.tmp"})
        EXPECT_FALSE(is_manifest_name(name)) << name;
}

} // namespace gantry::source_file
