#include "core/cli/commands.hpp"

#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>

#include "base/json.hpp"
#include "core/admin/frames.hpp"
#include "core/cli/client.hpp"
#include "core/cli/exec_stream.hpp"
#include "core/cli/json_path.hpp"
#include "core/cli/pod_row.hpp"
#include "core/cli/progress_bar.hpp"
#include "core/cli/table.hpp"

namespace gantry::core::cli {

namespace {

using base::json::value;
using rows = std::vector<std::vector<std::string>>;

int fail(const error& e) {
    std::fprintf(stderr, "gantry: %s\n", e.message.c_str());
    return e.code == code::invalid ? 2 : 1;
}

int finish(const result<void>& outcome) { return outcome ? 0 : fail(outcome.error()); }

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

auto now() { return std::chrono::system_clock::now(); }

std::string pod_target(const char* prefix, const pod_name& pod) {
    return std::string(prefix) + "/" + url_encode(pod.namespace_) + "/" + url_encode(pod.name);
}

/// GETs a list and prints it as a table of `row`s or as JSON.
template <class Row>
int print_list(const common_options& common, const std::string& target, std::vector<std::string> head, Row row) {
    auto list = admin_client(common.socket).call_json("GET", target);
    if (!list) return fail(list.error());
    if (common.json) {
        print(base::to_pretty(*list) + "\n");
        return 0;
    }
    rows table{std::move(head)};
    for (const auto& item : array_at(*list, "items")) table.push_back(row(item));
    print(render_table(table));
    return 0;
}

/// Follows a stream and prints each object as one line.
template <class Line>
int print_stream(const common_options& common, const std::string& target, Line line) {
    return finish(admin_client(common.socket).stream_json("GET", target, {}, [&](const value& item) {
        print((common.json ? base::to_text(item) : line(item)) + "\n");
        std::fflush(stdout);
        return true;
    }));
}

int bad_pod_name(const std::string& text) {
    std::fprintf(stderr, "gantry: \"%s\" is not a pod; write NAMESPACE/POD\n", text.c_str());
    return 2;
}

std::string first_line_cells(const std::vector<std::string>& cells) {
    std::string line = render_table({cells});
    line.pop_back();
    return line;
}

std::vector<std::string> event_row(const value& event) {
    return {age_of(text_at(event, "lastTimestamp"), now()),
            text_at(event, "type"),
            text_at(event, "reason"),
            text_at(event, "involvedObject.namespace") + "/" + text_at(event, "involvedObject.name"),
            text_at(event, "count", "1"),
            text_at(event, "message")};
}

std::string joined(const base::json::array& items, const char* separator) {
    std::string out;
    for (const auto& item : items) {
        if (!out.empty()) out += separator;
        out += item.is_string() ? std::string(item.get_string()) : base::to_text(item);
    }
    return out;
}

} // namespace

bool parse_pod_name(const std::string& text, pod_name& out) {
    const auto slash = text.find('/');
    out.namespace_ = slash == std::string::npos ? "default" : text.substr(0, slash);
    out.name = slash == std::string::npos ? text : text.substr(slash + 1);
    return !out.namespace_.empty() && !out.name.empty() && out.name.find('/') == std::string::npos;
}

int pods(const common_options& common, const std::string& pod) {
    if (!pod.empty()) {
        pod_name name;
        if (!parse_pod_name(pod, name)) return bad_pod_name(pod);
        auto object = admin_client(common.socket).call_json("GET", pod_target("/v1/pods", name));
        if (!object) return fail(object.error());
        print(common.json ? base::to_pretty(*object) + "\n"
                          : render_table({{"NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP"},
                                          pod_row(*object, now())}));
        return 0;
    }
    if (common.watch)
        return print_stream(common, "/v1/pods?watch=1", [](const value& event) {
            auto cells = pod_row(*find(event, "object"), now());
            cells.insert(cells.begin(), text_at(event, "type"));
            return first_line_cells(cells);
        });
    return print_list(common, "/v1/pods", {"NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP"},
                      [](const value& item) { return pod_row(item, now()); });
}

int events(const common_options& common, const std::string& pod) {
    std::string target = "/v1/events?";
    if (!pod.empty()) {
        pod_name name;
        if (!parse_pod_name(pod, name)) return bad_pod_name(pod);
        target += "namespace=" + url_encode(name.namespace_) + "&name=" + url_encode(name.name) + "&";
    }
    if (common.watch)
        return print_stream(common, target + "watch=1", [](const value& e) { return first_line_cells(event_row(e)); });
    return print_list(common, target, {"LAST SEEN", "TYPE", "REASON", "POD", "COUNT", "MESSAGE"}, event_row);
}

int images(const common_options& common) {
    return print_list(common, "/v1/images", {"IMAGE", "ID", "SIZE", "IN USE"}, [](const value& image) {
        const auto& refs = array_at(image, "repoTags");
        std::string id = text_at(image, "id");
        if (id.starts_with("sha256:")) id = id.substr(7, 12);
        return std::vector<std::string>{refs.empty() ? "<none>" : joined(refs, ","), id,
                                        short_size(static_cast<std::uint64_t>(number_at(image, "size"))),
                                        text_at(image, "inUse", "false") == "true" ? "yes" : "no"};
    });
}

int plugins(const common_options& common) {
    return print_list(common, "/v1/plugins", {"NAME", "PLUGIN", "VERSION", "STATE", "CAPABILITIES", "OPS", "FAULTS", "DETAIL"},
                      [](const value& plugin) {
                          return std::vector<std::string>{text_at(plugin, "name"),    text_at(plugin, "id"),
                                                          text_at(plugin, "version"), text_at(plugin, "state"),
                                                          joined(array_at(plugin, "capabilities"), ","),
                                                          text_at(plugin, "ops"),     text_at(plugin, "faults"),
                                                          text_at(plugin, "detail")};
                      });
}

int explain(const common_options& common, const std::string& pod) {
    pod_name name;
    if (!parse_pod_name(pod, name)) return bad_pod_name(pod);
    auto answer = admin_client(common.socket).call_json("GET", pod_target("/v1/explain", name));
    if (!answer) return fail(answer.error());
    if (common.json) {
        print(base::to_pretty(*answer) + "\n");
        return 0;
    }
    print(text_at(*answer, "summary") + "\n");
    if (auto next = text_at(*answer, "next"); !next.empty()) print("next: " + next + "\n");
    rows steps{{"TIME", "STEP", "PLUGIN", "TOOK", "OUTCOME"}};
    for (const auto& step : array_at(*answer, "steps"))
        steps.push_back({text_at(step, "time"), text_at(step, "op"), text_at(step, "plugin"), text_at(step, "took"),
                         text_at(step, "outcome")});
    print("\n" + render_table(steps));
    if (const auto& items = array_at(*answer, "events"); !items.empty()) {
        rows table{{"LAST SEEN", "TYPE", "REASON", "COUNT", "MESSAGE"}};
        for (const auto& event : items) {
            auto cells = event_row(event);
            cells.erase(cells.begin() + 3);
            table.push_back(std::move(cells));
        }
        print("\n" + render_table(table));
    }
    return 0;
}

int logs(const common_options& common, const logs_options& options) {
    pod_name name;
    if (!parse_pod_name(options.pod, name)) return bad_pod_name(options.pod);
    std::string target = pod_target("/v1/logs", name) + "?container=" + url_encode(options.container);
    if (options.follow) target += "&follow=1";
    if (options.previous) target += "&previous=1";
    if (options.timestamps) target += "&timestamps=1";
    if (options.tail >= 0) target += "&tail=" + std::to_string(options.tail);
    if (!options.since.empty()) target += "&since=" + url_encode(options.since);
    return finish(admin_client(common.socket).stream("GET", target, {}, [](std::string_view bytes) {
        const bool written = std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size();
        return std::fflush(stdout) == 0 && written;
    }));
}

int exec(const common_options& common, const exec_options& options) {
    pod_name name;
    if (!parse_pod_name(options.pod, name)) return bad_pod_name(options.pod);
    if (options.tty && ::isatty(STDIN_FILENO) == 0) {
        std::fprintf(stderr, "gantry: -t needs a terminal on stdin; leave it out\n");
        return 2;
    }
    base::json::array command;
    for (const auto& word : options.command) command.emplace_back(word);
    const value body{{"container", options.container},
                     {"command", command},
                     {"stdin", options.interactive},
                     {"tty", options.tty}};
    auto connection = admin_client(common.socket).upgrade("POST", pod_target("/v1/exec", name), base::to_text(body));
    if (!connection) return fail(connection.error());
    auto ended = relay_exec(*std::move(connection), {options.interactive, options.tty});
    return ended ? *ended : fail(ended.error());
}

int image_load(const common_options& common, const std::string& file, const std::string& ref) {
    char absolute[PATH_MAX];
    if (::realpath(file.c_str(), absolute) == nullptr) return fail(sys_error("open " + file, errno));
    const value body{{"path", absolute}, {"ref", ref}};
    progress_bar bar(::isatty(STDERR_FILENO) != 0);
    int exit_code = 1;
    auto streamed =
        admin_client(common.socket).stream_json("POST", "/v1/images/load", base::to_text(body), [&](const value& item) {
            if (const auto* progress = find(item, "progress")) {
                bar.update(text_at(*progress, "what"), static_cast<std::uint64_t>(number_at(*progress, "done")),
                           static_cast<std::uint64_t>(number_at(*progress, "total")));
            } else if (const auto* e = find(item, "error")) {
                bar.finish();
                std::fprintf(stderr, "gantry: %s\n", text_at(*e, "message").c_str());
            } else {
                bar.finish();
                for (const auto& image : array_at(item, "images"))
                    print("loaded " + joined(array_at(image, "refs"), " ") + "  " + text_at(image, "id") + "\n");
                exit_code = 0;
            }
            return true;
        });
    return streamed ? exit_code : fail(streamed.error());
}

int image_remove(const common_options& common, const std::vector<std::string>& refs) {
    int exit_code = 0;
    for (const auto& ref : refs) {
        auto removed = admin_client(common.socket).call("DELETE", "/v1/images/" + url_encode(ref));
        if (removed)
            print("removed " + ref + "\n");
        else
            exit_code = fail(removed.error());
    }
    return exit_code;
}

int plugin_enable(const common_options& common, const std::string& name) {
    auto answer = admin_client(common.socket).call_json("POST", "/v1/plugins/" + url_encode(name) + "/enable");
    if (!answer) return fail(answer.error());
    print(text_at(*answer, "message") + "\n");
    return 0;
}

int log_level(const common_options& common, const std::string& plugin, const std::string& level) {
    auto answer =
        admin_client(common.socket).call("PUT", "/v1/log-level/" + url_encode(plugin) + "/" + url_encode(level));
    return answer ? 0 : fail(answer.error());
}

} // namespace gantry::core::cli
