#include "plugins/common/netlink/conntrack.hpp"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <sys/socket.h>

#include <algorithm>
#include <string>

namespace gantry::netlink {

namespace {

// Bits of CTA_FILTER_ORIG_FLAGS: part of the kernel's interface, but in none of its exported headers.
constexpr std::uint32_t filter_protocol = 1 << 3;
constexpr std::uint32_t filter_destination_port = 1 << 5;

nfgenmsg header(bool v6) {
    return {.nfgen_family = static_cast<std::uint8_t>(v6 ? AF_INET6 : AF_INET), .version = NFNETLINK_V0, .res_id = 0};
}

constexpr std::uint16_t message_type(std::uint16_t type) {
    return static_cast<std::uint16_t>(NFNL_SUBSYS_CTNETLINK << 8 | type);
}

struct tuple {
    ip_address source{};
    ip_address destination{};
    std::uint8_t protocol = 0;
    std::uint16_t source_port = 0;
    std::uint16_t destination_port = 0;
};

tuple parse_tuple(const attribute& from, bool v6) {
    tuple t{.source = {.v6 = v6}, .destination = {.v6 = v6}};
    if (const auto ip = from.nested().find(CTA_TUPLE_IP)) {
        for (const auto& a : ip->nested()) {
            if (a.data.size() > 16) continue;
            if (a.type == CTA_IP_V4_SRC || a.type == CTA_IP_V6_SRC)
                std::copy(a.data.begin(), a.data.end(), t.source.raw.begin());
            if (a.type == CTA_IP_V4_DST || a.type == CTA_IP_V6_DST)
                std::copy(a.data.begin(), a.data.end(), t.destination.raw.begin());
        }
    }
    if (const auto proto = from.nested().find(CTA_TUPLE_PROTO)) {
        for (const auto& a : proto->nested()) {
            if (a.type == CTA_PROTO_NUM) t.protocol = a.u8();
            if (a.type == CTA_PROTO_SRC_PORT) t.source_port = a.be16();
            if (a.type == CTA_PROTO_DST_PORT) t.destination_port = a.be16();
        }
    }
    return t;
}

result<replies> flows_to(socket& s, bool v6, std::uint8_t protocol, std::uint16_t port, bool filtered) {
    batch b;
    b.begin(message_type(IPCTNL_MSG_CT_GET), NLM_F_REQUEST | NLM_F_DUMP, header(v6), "list connection tracking flows");
    if (filtered) {
        {
            const auto original = b.open(CTA_TUPLE_ORIG);
            const auto proto = b.open(CTA_TUPLE_PROTO);
            b.put_u8(CTA_PROTO_NUM, protocol);
            b.put_be16(CTA_PROTO_DST_PORT, port);
        }
        const auto filter = b.open(CTA_FILTER);
        b.put_u32(CTA_FILTER_ORIG_FLAGS, filter_protocol | filter_destination_port);
        b.put_u32(CTA_FILTER_REPLY_FLAGS, 0);
    }
    return s.request(b);
}

} // namespace

result<std::size_t> forget_flows(socket& s, bool v6, std::uint8_t protocol, std::uint16_t port,
                                 const std::function<bool(const flow&)>& doomed) {
    auto answer = flows_to(s, v6, protocol, port, true);
    if (!answer && (answer.error().sys_errno == EOPNOTSUPP || answer.error().sys_errno == EINVAL))
        answer = flows_to(s, v6, protocol, port, false);
    if (!answer) return std::move(answer).error();

    batch deletions;
    for (std::size_t i = 0; i < answer->count(); ++i) {
        const attributes all((*answer)[i], sizeof(nfgenmsg));
        const auto original = all.find(CTA_TUPLE_ORIG);
        const auto reply = all.find(CTA_TUPLE_REPLY);
        if (!original || !reply) continue;
        const tuple there = parse_tuple(*original, v6);
        const tuple back = parse_tuple(*reply, v6);
        if (there.protocol != protocol || there.destination_port != port) continue;
        if (!doomed({there.destination, there.destination_port, back.source, back.source_port})) continue;
        deletions.begin(message_type(IPCTNL_MSG_CT_DELETE), NLM_F_REQUEST, header(v6),
                        "forget the flow to " + there.destination.text() + " port " + std::to_string(port));
        deletions.put(CTA_TUPLE_ORIG | NLA_F_NESTED, original->data);
        if (const auto id = all.find(CTA_ID)) deletions.put(CTA_ID, id->data);
        if (const auto zone = all.find(CTA_ZONE)) deletions.put(CTA_ZONE, zone->data);
    }
    std::vector<int> outcomes;
    if (auto sent = s.send(deletions, outcomes); !sent) {
        // Gone by itself in the meantime is what was wanted.
        const bool all_gone =
            std::all_of(outcomes.begin(), outcomes.end(), [](int n) { return n == 0 || n == ENOENT; });
        if (!all_gone || sent.error().sys_errno != ENOENT) return std::move(sent).error();
    }
    return static_cast<std::size_t>(std::count(outcomes.begin(), outcomes.end(), 0));
}

} // namespace gantry::netlink
