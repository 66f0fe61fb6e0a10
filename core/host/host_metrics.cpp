#include "core/host/host_metrics.hpp"

#include <map>
#include <vector>

#include "core/host/metrics.hpp"
#include "gantry/abi/host.h"

namespace gantry::core {

namespace {

using instances = std::vector<std::unique_ptr<instance>>;

void write_ops(metrics_writer& out, const instances& all) {
    struct line {
        const instance* owner;
        op_router::op_metrics op;
    };
    std::vector<line> lines;
    for (const auto& one : all)
        for (auto& op : one->ops().metrics()) lines.push_back({one.get(), std::move(op)});
    const auto labels = [](const line& l) {
        return metrics_writer::labels{{"instance", l.owner->name()}, {"capability", l.op.capability}, {"op", l.op.name}};
    };
    out.family("gantry_op_total", "counter", "Operations finished, by outcome.");
    for (const auto& line : lines) {
        for (std::size_t c = 0; c < line.op.by_code.size(); ++c) {
            if (line.op.by_code[c] == 0) continue;
            auto with_code = labels(line);
            with_code.emplace_back("code", to_string(static_cast<code>(c)));
            out.sample("gantry_op_total", with_code, static_cast<double>(line.op.by_code[c]));
        }
    }
    out.family("gantry_op_seconds", "histogram", "Time from submission to completion.");
    for (const auto& line : lines) out.histogram("gantry_op_seconds", labels(line), line.op.seconds);
    out.family("gantry_op_open", "gauge", "Operations waiting or running.");
    for (const auto& line : lines) out.sample("gantry_op_open", labels(line), static_cast<double>(line.op.open));
}

void write_instances(metrics_writer& out, const instances& all) {
    out.family("gantry_op_abandoned_total", "counter", "Operations given up after deadline and grace.");
    for (const auto& one : all)
        out.sample("gantry_op_abandoned_total", {{"instance", one->name()}}, static_cast<double>(one->ops().totals().abandoned));
    out.family("gantry_instance_faults_total", "counter", "Misbehaviour of plugins, by kind.");
    for (const auto& one : all)
        for (const auto& [kind, count] : one->faults())
            out.sample("gantry_instance_faults_total", {{"instance", one->name()}, {"kind", kind}}, static_cast<double>(count));
    out.family("gantry_instance_state", "gauge", "1 for the state that the instance is in.");
    for (const auto& one : all) {
        const auto state = to_string(one->state());
        out.sample("gantry_instance_state", {{"instance", one->name()}, {"plugin", one->chosen().plugin.id}, {"state", state}}, 1);
    }
}

void write_plugins_own(metrics_writer& out, const instances& all) {
    struct member {
        const instance* owner;
        plugin_metrics::family family;
    };
    std::map<std::string, std::vector<member>> by_name; // samples of one family follow each other, whoever defined it
    for (const auto& one : all)
        for (auto& family : one->metrics().snapshot()) by_name[family.name].push_back({one.get(), std::move(family)});
    constexpr std::string_view types[] = {"counter", "gauge", "histogram"};
    for (const auto& [name, members] : by_name) {
        const auto exposed = "gantry_plugin_" + name;
        const auto kind = members.front().family.kind;
        out.family(exposed, types[kind], members.front().family.help);
        for (const auto& [owner, family] : members) {
            if (family.kind != kind) continue; // two plugins disagree: the first one named it
            const auto labels = [&owner = owner](const std::string& key) {
                metrics_writer::labels labels{{"instance", owner->name()}};
                if (!key.empty()) labels.emplace_back("key", key);
                return labels;
            };
            for (const auto& [key, value] : family.values) out.sample(exposed, labels(key), value);
            for (const auto& [key, histogram] : family.histograms) out.histogram(exposed, labels(key), histogram);
        }
    }
}

} // namespace

std::string host_metrics_text(const instances& all) {
    metrics_writer out;
    write_ops(out, all);
    write_instances(out, all);
    write_plugins_own(out, all);
    return out.take();
}

} // namespace gantry::core
