// fake_host notices what a plugin written straight against the C ABI does wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gantry/abi/draft/network.h"
#include "gantry/sdk/fake_host.h"

namespace gantry::fake {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const gantry_op_service* ops_service = nullptr;
const gantry_host* given_host = nullptr;
gantry_plugin table{};

void complete(gantry_op op, const gantry_error* e = nullptr) {
    const gantry_reply reply{sizeof(gantry_reply), 0, nullptr, {"", 0}, e};
    ops_service->complete(ops_service->host, op, &reply);
}
gantry_status init(void*, gantry_error_sink*) {
    ops_service = static_cast<const gantry_op_service*>(
        given_host->get(given_host, {GANTRY_SERVICE_OP, sizeof(GANTRY_SERVICE_OP) - 1}));
    return GANTRY_OK;
}
gantry_status silent_init(void*, gantry_error_sink*) { return GANTRY_UNAVAILABLE; }
void destroy(void*) {}
const void* no_capability(void*, gantry_str) { return nullptr; }

const gantry_plugin* create(std::uint32_t, const gantry_host* host, gantry_error_sink*) {
    given_host = host;
    table = {};
    table.struct_size = sizeof(table);
    table.init = &init;
    table.capability = &no_capability;
    table.destroy = &destroy;
    return &table;
}
const gantry_plugin* early_create(std::uint32_t index, const gantry_host* host, gantry_error_sink* sink) {
    (void)host->get(host, {GANTRY_SERVICE_LOG, sizeof(GANTRY_SERVICE_LOG) - 1});
    return create(index, host, sink);
}
const gantry_plugin* silent_create(std::uint32_t, const gantry_host*, gantry_error_sink*) { return nullptr; }

gantry_plugin_entry entry_with(decltype(gantry_plugin_entry::create) make) {
    return {sizeof(gantry_plugin_entry), GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR, 1, 0, nullptr, make};
}

gantry_status twice(void*, const gantry_request*, gantry_op op) {
    complete(op);
    complete(op);
    return GANTRY_OK;
}
gantry_status never(void*, const gantry_request*, gantry_op) { return GANTRY_OK; }
gantry_status unknown(void*, const gantry_request*, gantry_op op) {
    complete(op + 1000);
    complete(op);
    return GANTRY_OK;
}
gantry_status no_message(void*, const gantry_request*, gantry_op op) {
    const gantry_error e{sizeof(gantry_error), GANTRY_INVALID, 0, 0, 0, {nullptr, 0}, {nullptr, 0}};
    complete(op, &e);
    return GANTRY_OK;
}
gantry_status complete_and_refuse(void*, const gantry_request*, gantry_op op) {
    complete(op);
    return GANTRY_BUSY;
}

struct fake_host_test : ::testing::Test {
    host h;
    gantry_plugin_entry entry = entry_with(&create);
    plugin p{h, &entry};
    void SetUp() override { ASSERT_TRUE(p.start().ok()); }
};

TEST_F(fake_host_test, second_completion) {
    EXPECT_TRUE(p.call(&twice).ok());
    EXPECT_THAT(h.misbehaviour(), ElementsAre(HasSubstr("second completion")));
}

TEST_F(fake_host_test, completion_that_never_comes) {
    const auto op = p.begin(&never);
    EXPECT_EQ(p.wait(op, 5ms).error.message, "not completed");
    EXPECT_THAT(h.operations().unfinished(), ElementsAre(op));
}

TEST_F(fake_host_test, completion_of_an_unknown_number) {
    EXPECT_TRUE(p.call(&unknown).ok());
    EXPECT_THAT(h.misbehaviour(), ElementsAre(HasSubstr("does not exist")));
}

TEST_F(fake_host_test, error_without_a_message) {
    EXPECT_EQ(p.call(&no_message).error.code, GANTRY_INVALID);
    EXPECT_THAT(h.misbehaviour(), ElementsAre(HasSubstr("without a message")));
}

TEST_F(fake_host_test, completed_and_then_refused) {
    EXPECT_TRUE(p.call(&complete_and_refuse).ok());
    EXPECT_THAT(h.misbehaviour(), Contains(HasSubstr("completed and then refused")));
}

TEST_F(fake_host_test, operation_that_the_table_lacks) { EXPECT_EQ(p.call(nullptr).error.code, GANTRY_UNSUPPORTED); }

TEST_F(fake_host_test, completion_after_stop_has_no_effect) {
    const auto op = p.begin(&never);
    p.stop();
    complete(op);
    EXPECT_TRUE(h.operations().completed(op));
    EXPECT_THAT(h.misbehaviour(), IsEmpty());
}

TEST(fake_host, service_used_in_create) {
    host h;
    const auto entry = entry_with(&early_create);
    plugin p(h, &entry);
    EXPECT_THAT(h.misbehaviour(), ElementsAre(HasSubstr("before init()")));
}

TEST(fake_host, create_that_fails_without_an_error) {
    host h;
    const auto entry = entry_with(&silent_create);
    plugin p(h, &entry);
    EXPECT_FALSE(p.created().ok());
    EXPECT_THAT(h.misbehaviour(), ElementsAre(HasSubstr("without exactly one error message")));
}

TEST(fake_host, init_that_fails_without_an_error) {
    host h;
    const auto entry = entry_with(&create);
    plugin p(h, &entry);
    table.init = &silent_init;
    EXPECT_EQ(p.init().error.code, GANTRY_UNAVAILABLE);
    EXPECT_THAT(h.misbehaviour(), ElementsAre(HasSubstr("without exactly one error message")));
}

} // namespace
} // namespace gantry::fake
