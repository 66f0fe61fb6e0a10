#include "plugins/cri-native/images/index.hpp"

namespace gantry::images {

namespace {

using base::json::array;
using base::json::object;

constexpr int format = 1;

std::string text_at(const object& in, std::string_view key) { return std::string(in.at(key).as_string()); }

array list_of(const std::vector<std::string>& items) { return array(items.begin(), items.end()); }

} // namespace

std::vector<std::string> strings_in(const base::json::value& list) {
    std::vector<std::string> out;
    for (const auto& item : list.as_array()) out.emplace_back(item.as_string());
    return out;
}

object config_fields(const image& from) {
    object labels;
    for (const auto& [key, value] : from.config.labels) labels[key] = value;
    return {{"created", from.created},
            {"os", from.os},
            {"architecture", from.architecture},
            {"user", from.config.user},
            {"env", list_of(from.config.env)},
            {"entrypoint", list_of(from.config.entrypoint)},
            {"cmd", list_of(from.config.cmd)},
            {"workingDir", from.config.working_dir},
            {"stopSignal", from.config.stop_signal},
            {"volumes", list_of(from.config.volumes)},
            {"exposedPorts", list_of(from.config.exposed_ports)},
            {"labels", std::move(labels)}};
}

image image_with(const std::string& id, const object& fields) {
    image out;
    out.id = id;
    out.created = text_at(fields, "created");
    out.os = text_at(fields, "os");
    out.architecture = text_at(fields, "architecture");
    out.config.user = text_at(fields, "user");
    out.config.env = strings_in(fields.at("env"));
    out.config.entrypoint = strings_in(fields.at("entrypoint"));
    out.config.cmd = strings_in(fields.at("cmd"));
    out.config.working_dir = text_at(fields, "workingDir");
    out.config.stop_signal = text_at(fields, "stopSignal");
    out.config.volumes = strings_in(fields.at("volumes"));
    out.config.exposed_ports = strings_in(fields.at("exposedPorts"));
    for (const auto& label : fields.at("labels").as_object())
        out.config.labels[label.key()] = std::string(label.value().as_string());
    return out;
}

std::string to_text(const index& records) {
    object layers;
    for (const auto& [dir, layer] : records.layers)
        layers[dir] = object{{"diffID", layer.diff_id},
                             {"chain", layer.chain},
                             {"bytes", layer.bytes},
                             {"inodes", layer.inodes},
                             {"opaqueRoot", layer.opaque_root}};
    object images;
    for (const auto& [id, image] : records.images)
        images[id] = object{{"tags", list_of(image.tags)},
                            {"names", list_of(image.names)},
                            {"layers", list_of(image.layers)},
                            {"config", config_fields(image.info)}};
    return base::to_text(object{{"format", format},
                                {"nextLayer", records.next_layer},
                                {"layers", std::move(layers)},
                                {"images", std::move(images)}});
}

result<index> parse_index(std::string_view text) {
    GANTRY_TRY(const auto value, base::parse_json(text, "index.json"));
    try {
        const object& root = value.as_object();
        if (root.at("format").to_number<int>() != format)
            return error{.code = code::unsupported,
                         .message = "index.json: written by another version of the image store"};
        index records;
        records.next_layer = root.at("nextLayer").to_number<std::uint64_t>();
        for (const auto& item : root.at("layers").as_object()) {
            const object& layer = item.value().as_object();
            records.layers[item.key()] = {.diff_id = text_at(layer, "diffID"),
                                          .chain = text_at(layer, "chain"),
                                          .bytes = layer.at("bytes").to_number<std::uint64_t>(),
                                          .inodes = layer.at("inodes").to_number<std::uint64_t>(),
                                          .opaque_root = layer.at("opaqueRoot").as_bool()};
        }
        for (const auto& item : root.at("images").as_object()) {
            const object& image = item.value().as_object();
            records.images[item.key()] = {.info = image_with(item.key(), image.at("config").as_object()),
                                          .tags = strings_in(image.at("tags")),
                                          .names = strings_in(image.at("names")),
                                          .layers = strings_in(image.at("layers"))};
        }
        return records;
    } catch (const std::exception& e) {
        return error{.code = code::internal,
                     .message = std::string("index.json is not a record of images: ") + e.what()};
    }
}

} // namespace gantry::images
