// nf_tables over netlink: transactions of tables, chains, sets and rules of family inet, and what the kernel holds.
#pragma once

#include <netinet/in.h> // before linux/netfilter.h, which else defines the same types

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/common/netlink/socket.hpp"

namespace gantry::netlink::nft {

/// 32-bit registers: word(0)..word(15). A longer value takes as many words as it needs, each field of a concatenated
/// key or value starts a new word.
constexpr std::uint32_t word(std::uint32_t index) { return NFT_REG32_00 + index; }

/// Type numbers of the nft program, for its listing only.
enum class data_type : std::uint32_t { ipv4_addr = 7, ipv6_addr = 8, inet_proto = 12, inet_service = 13 };
/// The type number of a concatenation.
std::uint32_t concatenation(std::initializer_list<data_type> types);

struct hook {
    std::string type;         ///< "filter", "nat", "route"
    std::uint32_t number = 0; ///< NF_INET_*
    std::int32_t priority = 0;
    auto operator<=>(const hook&) const = default;
};

struct set_spec {
    std::string name;
    std::uint32_t key_type = 0;
    std::uint32_t key_size = 0;  ///< bytes, padded fields
    std::uint32_t data_type = 0; ///< of a map
    std::uint32_t data_size = 0; ///< 0: a set, not a map
};

struct element {
    std::vector<std::uint8_t> key{};
    std::vector<std::uint8_t> data{};
    auto operator<=>(const element&) const = default;
};

// A transaction: start(), any of the appenders, finish(), then socket::commit().
void start(batch& b);
void finish(batch& b);
void add_table(batch& b, const std::string& table);
void delete_table(batch& b, const std::string& table);
/// A base chain (policy accept) with a hook, a regular chain without.
void add_chain(batch& b, const std::string& table, const std::string& chain, const std::optional<hook>& at = {});
/// id: unique in the transaction.
void add_set(batch& b, const std::string& table, const set_spec& set, std::uint32_t id);
void add_elements(batch& b, const std::string& table, const std::string& set, std::span<const element> elements);
void delete_elements(batch& b, const std::string& table, const std::string& set, std::span<const element> elements);

/// One rule under construction at the end of a chain. finish() must be called; it returns the rule's identity: a digest
/// of its expressions, kept in the kernel as the rule's comment, by which a listing proves that the rule is ours and
/// whole.
class rule {
public:
    rule(batch& b, const std::string& table, const std::string& chain);

    rule& meta(std::uint32_t key, std::uint32_t to);
    rule& payload(std::uint32_t base, std::uint32_t offset, std::uint32_t size, std::uint32_t to);
    rule& conntrack(std::uint32_t key, std::uint32_t to);
    /// The address type (RTN_LOCAL, ...) of the packet's destination.
    rule& destination_type(std::uint32_t to);
    rule& bit_and(std::uint32_t reg, std::span<const std::uint8_t> mask);
    rule& equal(std::uint32_t reg, std::span<const std::uint8_t> value) { return compare(reg, NFT_CMP_EQ, value); }
    rule& not_equal(std::uint32_t reg, std::span<const std::uint8_t> value) { return compare(reg, NFT_CMP_NEQ, value); }
    /// Goes on only if the set has the key that starts at `key`; a map's value is stored at `value`.
    rule& lookup(const std::string& set, std::uint32_t key, std::optional<std::uint32_t> value = {});
    rule& masquerade(std::uint32_t nat_range_flags);
    rule& dnat(std::uint32_t family, std::uint32_t address, std::uint32_t port);
    rule& jump(const std::string& chain);
    /// NF_DROP, NF_ACCEPT, NFT_RETURN
    rule& verdict(std::int32_t code, std::string_view chain = {});

    std::string finish();

private:
    rule& compare(std::uint32_t reg, std::uint32_t op, std::span<const std::uint8_t> value);
    template <class Body>
    rule& expression(std::string_view name, Body body);

    batch& b_;
    std::size_t start_ = 0;
    std::optional<batch::nest> list_;
};

// What the kernel holds of one table.
struct listed_chain {
    std::string name;
    std::optional<hook> at;
    auto operator<=>(const listed_chain&) const = default;
};
struct listed_rule {
    std::string chain;
    std::string comment;
    auto operator<=>(const listed_rule&) const = default;
};

/// code::unsupported when the kernel has no nf_tables.
result<bool> has_table(socket& netfilter, const std::string& table);
result<std::vector<listed_chain>> list_chains(socket& netfilter, const std::string& table);
/// In their order within each chain.
result<std::vector<listed_rule>> list_rules(socket& netfilter, const std::string& table);
result<std::vector<std::string>> list_sets(socket& netfilter, const std::string& table);
/// Sorted.
result<std::vector<element>> list_elements(socket& netfilter, const std::string& table, const std::string& set);

} // namespace gantry::netlink::nft
