#include "plugins/common/netlink/nft.hpp"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>

#include <algorithm>
#include <cstdio>

namespace gantry::netlink::nft {

namespace {

constexpr std::uint16_t change_flags = NLM_F_REQUEST;
constexpr std::uint16_t create_flags = NLM_F_REQUEST | NLM_F_CREATE;
constexpr std::size_t elements_per_message = 256; // keeps the list's attribute far below its 64 KiB limit

nfgenmsg header(std::uint8_t family, std::uint16_t resource = 0) {
    return {.nfgen_family = family, .version = NFNETLINK_V0, .res_id = htons(resource)};
}

void begin(batch& b, std::uint16_t type, std::uint16_t flags, std::string label) {
    b.begin(static_cast<std::uint16_t>(NFNL_SUBSYS_NFTABLES << 8 | type), flags, header(NFPROTO_INET),
            std::move(label));
}

void put_value(batch& b, std::uint16_t type, std::span<const std::uint8_t> value) {
    const auto data = b.open(type);
    b.put(NFTA_DATA_VALUE, value);
}

void put_elements(batch& b, std::uint16_t type, std::uint16_t flags, const std::string& verb, const std::string& table,
                  const std::string& set, std::span<const element> elements) {
    while (!elements.empty()) {
        const auto part = elements.first(std::min(elements.size(), elements_per_message));
        elements = elements.subspan(part.size());
        begin(b, type, flags, verb + set + " of nftables table " + table);
        b.put_text(NFTA_SET_ELEM_LIST_TABLE, table);
        b.put_text(NFTA_SET_ELEM_LIST_SET, set);
        const auto list = b.open(NFTA_SET_ELEM_LIST_ELEMENTS);
        for (const auto& e : part) {
            const auto one = b.open(NFTA_LIST_ELEM);
            put_value(b, NFTA_SET_ELEM_KEY, e.key);
            if (!e.data.empty() && type == NFT_MSG_NEWSETELEM) put_value(b, NFTA_SET_ELEM_DATA, e.data);
        }
    }
}

std::uint64_t digest(std::span<const std::uint8_t> bytes) {
    std::uint64_t hash = 14695981039346656037u; // FNV-1a
    for (const auto byte : bytes) hash = (hash ^ byte) * 1099511628211u;
    return hash;
}

/// One dump; `fill` adds the attributes that select. A table or set that is not there is an empty dump.
template <class Fill>
result<replies> dump(socket& s, std::uint16_t type, std::string label, Fill fill) {
    batch b;
    begin(b, type, NLM_F_REQUEST | NLM_F_DUMP, std::move(label));
    fill(b);
    auto answer = s.request(b);
    if (!answer && answer.error().sys_errno == ENOENT) return replies{};
    return answer;
}

std::vector<std::uint8_t> value_of(const std::optional<attribute>& a) {
    if (!a) return {};
    const auto value = a->nested().find(NFTA_DATA_VALUE);
    return value ? std::vector<std::uint8_t>(value->data.begin(), value->data.end()) : std::vector<std::uint8_t>{};
}

std::string text_of(const attributes& all, std::uint16_t type) {
    const auto a = all.find(type);
    return a ? std::string(a->text()) : std::string();
}

/// The comment of a rule's user data, which is a list of (type, length, bytes); type 0 is the comment.
std::string comment_in(std::span<const std::uint8_t> data) {
    while (data.size() >= 2 && data.size() >= std::size_t{2} + data[1]) {
        const auto value = data.subspan(2, data[1]);
        if (data[0] == 0 && !value.empty()) return {value.begin(), value.end() - 1};
        data = data.subspan(2 + value.size());
    }
    return {};
}

} // namespace

std::uint32_t concatenation(std::initializer_list<data_type> types) {
    std::uint32_t number = 0;
    for (const auto type : types) number = number << 6 | static_cast<std::uint32_t>(type);
    return number;
}

void start(batch& b) {
    b.begin(NFNL_MSG_BATCH_BEGIN, NLM_F_REQUEST, header(AF_UNSPEC, NFNL_SUBSYS_NFTABLES), "nftables transaction");
}

void finish(batch& b) {
    b.begin(NFNL_MSG_BATCH_END, NLM_F_REQUEST, header(AF_UNSPEC, NFNL_SUBSYS_NFTABLES), "nftables transaction");
}

void add_table(batch& b, const std::string& table) {
    begin(b, NFT_MSG_NEWTABLE, create_flags, "add nftables table " + table);
    b.put_text(NFTA_TABLE_NAME, table);
}

void delete_table(batch& b, const std::string& table) {
    begin(b, NFT_MSG_DELTABLE, change_flags, "delete nftables table " + table);
    b.put_text(NFTA_TABLE_NAME, table);
}

void add_chain(batch& b, const std::string& table, const std::string& chain, const std::optional<hook>& at) {
    begin(b, NFT_MSG_NEWCHAIN, create_flags, "add chain " + chain + " to nftables table " + table);
    b.put_text(NFTA_CHAIN_TABLE, table);
    b.put_text(NFTA_CHAIN_NAME, chain);
    if (!at) return;
    {
        const auto hook = b.open(NFTA_CHAIN_HOOK);
        b.put_be32(NFTA_HOOK_HOOKNUM, at->number);
        b.put_be32(NFTA_HOOK_PRIORITY, static_cast<std::uint32_t>(at->priority));
    }
    b.put_text(NFTA_CHAIN_TYPE, at->type);
    b.put_be32(NFTA_CHAIN_POLICY, NF_ACCEPT);
}

void add_set(batch& b, const std::string& table, const set_spec& set, std::uint32_t id) {
    begin(b, NFT_MSG_NEWSET, create_flags, "add set " + set.name + " to nftables table " + table);
    b.put_text(NFTA_SET_TABLE, table);
    b.put_text(NFTA_SET_NAME, set.name);
    b.put_be32(NFTA_SET_ID, id);
    b.put_be32(NFTA_SET_KEY_TYPE, set.key_type);
    b.put_be32(NFTA_SET_KEY_LEN, set.key_size);
    b.put_be32(NFTA_SET_FLAGS, set.data_size > 0 ? NFT_SET_MAP : 0);
    if (set.data_size == 0) return;
    b.put_be32(NFTA_SET_DATA_TYPE, set.data_type);
    b.put_be32(NFTA_SET_DATA_LEN, set.data_size);
}

void add_elements(batch& b, const std::string& table, const std::string& set, std::span<const element> elements) {
    put_elements(b, NFT_MSG_NEWSETELEM, create_flags, "add elements to set ", table, set, elements);
}

void delete_elements(batch& b, const std::string& table, const std::string& set, std::span<const element> elements) {
    put_elements(b, NFT_MSG_DELSETELEM, change_flags, "delete elements from set ", table, set, elements);
}

rule::rule(batch& b, const std::string& table, const std::string& chain) : b_(b) {
    begin(b, NFT_MSG_NEWRULE, create_flags | NLM_F_APPEND,
          "add a rule to chain " + chain + " of nftables table " + table);
    b.put_text(NFTA_RULE_TABLE, table);
    b.put_text(NFTA_RULE_CHAIN, chain);
    start_ = b.bytes();
    list_.emplace(b, NFTA_RULE_EXPRESSIONS);
}

template <class Body>
rule& rule::expression(std::string_view name, Body body) {
    const auto one = b_.open(NFTA_LIST_ELEM);
    b_.put_text(NFTA_EXPR_NAME, name);
    const auto data = b_.open(NFTA_EXPR_DATA);
    body();
    return *this;
}

rule& rule::meta(std::uint32_t key, std::uint32_t to) {
    return expression("meta", [&] {
        b_.put_be32(NFTA_META_KEY, key);
        b_.put_be32(NFTA_META_DREG, to);
    });
}

rule& rule::payload(std::uint32_t base, std::uint32_t offset, std::uint32_t size, std::uint32_t to) {
    return expression("payload", [&] {
        b_.put_be32(NFTA_PAYLOAD_DREG, to);
        b_.put_be32(NFTA_PAYLOAD_BASE, base);
        b_.put_be32(NFTA_PAYLOAD_OFFSET, offset);
        b_.put_be32(NFTA_PAYLOAD_LEN, size);
    });
}

rule& rule::conntrack(std::uint32_t key, std::uint32_t to) {
    return expression("ct", [&] {
        b_.put_be32(NFTA_CT_KEY, key);
        b_.put_be32(NFTA_CT_DREG, to);
    });
}

rule& rule::destination_type(std::uint32_t to) {
    return expression("fib", [&] {
        b_.put_be32(NFTA_FIB_DREG, to);
        b_.put_be32(NFTA_FIB_RESULT, NFT_FIB_RESULT_ADDRTYPE);
        b_.put_be32(NFTA_FIB_FLAGS, NFTA_FIB_F_DADDR);
    });
}

rule& rule::bit_and(std::uint32_t reg, std::span<const std::uint8_t> mask) {
    return expression("bitwise", [&] {
        b_.put_be32(NFTA_BITWISE_SREG, reg);
        b_.put_be32(NFTA_BITWISE_DREG, reg);
        b_.put_be32(NFTA_BITWISE_LEN, static_cast<std::uint32_t>(mask.size()));
        put_value(b_, NFTA_BITWISE_MASK, mask);
        put_value(b_, NFTA_BITWISE_XOR, std::vector<std::uint8_t>(mask.size()));
    });
}

rule& rule::compare(std::uint32_t reg, std::uint32_t op, std::span<const std::uint8_t> value) {
    return expression("cmp", [&] {
        b_.put_be32(NFTA_CMP_SREG, reg);
        b_.put_be32(NFTA_CMP_OP, op);
        put_value(b_, NFTA_CMP_DATA, value);
    });
}

rule& rule::lookup(const std::string& set, std::uint32_t key, std::optional<std::uint32_t> value) {
    return expression("lookup", [&] {
        b_.put_text(NFTA_LOOKUP_SET, set);
        b_.put_be32(NFTA_LOOKUP_SREG, key);
        if (value) b_.put_be32(NFTA_LOOKUP_DREG, *value);
    });
}

rule& rule::masquerade(std::uint32_t nat_range_flags) {
    return expression("masq", [&] { b_.put_be32(NFTA_MASQ_FLAGS, nat_range_flags); });
}

rule& rule::dnat(std::uint32_t family, std::uint32_t address, std::uint32_t port) {
    return expression("nat", [&] {
        b_.put_be32(NFTA_NAT_TYPE, NFT_NAT_DNAT);
        b_.put_be32(NFTA_NAT_FAMILY, family);
        b_.put_be32(NFTA_NAT_REG_ADDR_MIN, address);
        b_.put_be32(NFTA_NAT_REG_PROTO_MIN, port);
    });
}

rule& rule::verdict(std::int32_t code, std::string_view chain) {
    return expression("immediate", [&] {
        b_.put_be32(NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
        const auto data = b_.open(NFTA_IMMEDIATE_DATA);
        const auto verdict = b_.open(NFTA_DATA_VERDICT);
        b_.put_be32(NFTA_VERDICT_CODE, static_cast<std::uint32_t>(code));
        if (!chain.empty()) b_.put_text(NFTA_VERDICT_CHAIN, chain);
    });
}

rule& rule::jump(const std::string& chain) { return verdict(NFT_JUMP, chain); }

std::string rule::finish() {
    list_.reset();
    char comment[32];
    const int size = std::snprintf(comment, sizeof comment, "gantry:%016llx",
                                   static_cast<unsigned long long>(digest(b_.tail(start_))));
    std::vector<std::uint8_t> data{0, static_cast<std::uint8_t>(size + 1)};
    data.insert(data.end(), comment, comment + size + 1);
    b_.put(NFTA_RULE_USERDATA, data);
    return comment;
}

result<bool> has_table(socket& s, const std::string& table) {
    batch b;
    begin(b, NFT_MSG_GETTABLE, NLM_F_REQUEST, "look up nftables table " + table);
    b.put_text(NFTA_TABLE_NAME, table);
    auto answer = s.request(b);
    if (answer) return true;
    if (answer.error().sys_errno == ENOENT) return false;
    error e = std::move(answer).error();
    if (e.sys_errno == EINVAL || e.sys_errno == EOPNOTSUPP || e.sys_errno == EPROTONOSUPPORT ||
        e.sys_errno == EAFNOSUPPORT) {
        e.code = code::unsupported;
        e.message += "; this kernel has no nf_tables: enable CONFIG_NF_TABLES and CONFIG_NF_TABLES_INET or load module "
                     "nf_tables";
    }
    return e;
}

result<std::vector<listed_chain>> list_chains(socket& s, const std::string& table) {
    GANTRY_TRY(const auto answer, dump(s, NFT_MSG_GETCHAIN, "list chains of nftables table " + table,
                                       [&](batch& b) { b.put_text(NFTA_CHAIN_TABLE, table); }));
    std::vector<listed_chain> chains;
    for (std::size_t i = 0; i < answer.count(); ++i) {
        const attributes all(answer[i], sizeof(nfgenmsg));
        if (text_of(all, NFTA_CHAIN_TABLE) != table) continue;
        listed_chain chain{.name = text_of(all, NFTA_CHAIN_NAME), .at = {}};
        if (const auto at = all.find(NFTA_CHAIN_HOOK)) {
            const auto number = at->nested().find(NFTA_HOOK_HOOKNUM);
            const auto priority = at->nested().find(NFTA_HOOK_PRIORITY);
            chain.at = hook{.type = text_of(all, NFTA_CHAIN_TYPE),
                            .number = number ? number->be32() : 0,
                            .priority = priority ? static_cast<std::int32_t>(priority->be32()) : 0};
        }
        chains.push_back(std::move(chain));
    }
    return chains;
}

result<std::vector<listed_rule>> list_rules(socket& s, const std::string& table) {
    GANTRY_TRY(const auto answer, dump(s, NFT_MSG_GETRULE, "list rules of nftables table " + table,
                                       [&](batch& b) { b.put_text(NFTA_RULE_TABLE, table); }));
    std::vector<listed_rule> rules;
    for (std::size_t i = 0; i < answer.count(); ++i) {
        const attributes all(answer[i], sizeof(nfgenmsg));
        if (text_of(all, NFTA_RULE_TABLE) != table) continue;
        const auto data = all.find(NFTA_RULE_USERDATA);
        rules.push_back({text_of(all, NFTA_RULE_CHAIN), data ? comment_in(data->data) : std::string()});
    }
    return rules;
}

result<std::vector<std::string>> list_sets(socket& s, const std::string& table) {
    GANTRY_TRY(const auto answer, dump(s, NFT_MSG_GETSET, "list sets of nftables table " + table,
                                       [&](batch& b) { b.put_text(NFTA_SET_TABLE, table); }));
    std::vector<std::string> sets;
    for (std::size_t i = 0; i < answer.count(); ++i) {
        const attributes all(answer[i], sizeof(nfgenmsg));
        if (text_of(all, NFTA_SET_TABLE) == table) sets.push_back(text_of(all, NFTA_SET_NAME));
    }
    return sets;
}

result<std::vector<element>> list_elements(socket& s, const std::string& table, const std::string& set) {
    GANTRY_TRY(const auto answer, dump(s, NFT_MSG_GETSETELEM,
                                       "list elements of set " + set + " of nftables table " + table, [&](batch& b) {
                                           b.put_text(NFTA_SET_ELEM_LIST_TABLE, table);
                                           b.put_text(NFTA_SET_ELEM_LIST_SET, set);
                                       }));
    std::vector<element> elements;
    for (std::size_t i = 0; i < answer.count(); ++i) {
        const auto list = attributes(answer[i], sizeof(nfgenmsg)).find(NFTA_SET_ELEM_LIST_ELEMENTS);
        if (!list) continue;
        for (const auto& one : list->nested())
            elements.push_back(
                {value_of(one.nested().find(NFTA_SET_ELEM_KEY)), value_of(one.nested().find(NFTA_SET_ELEM_DATA))});
    }
    std::sort(elements.begin(), elements.end());
    return elements;
}

} // namespace gantry::netlink::nft
