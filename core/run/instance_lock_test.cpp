#include "core/run/instance_lock.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/files.hpp"

namespace gantry::core {
namespace {

TEST(lock_instance, refuses_a_second_process_and_names_the_first) {
    char name[] = "/tmp/gantry-lock-XXXXXX";
    const std::string root = ::mkdtemp(name);
    {
        const auto first = lock_instance(root);
        ASSERT_TRUE(first);
        const auto second = lock_instance(root);
        ASSERT_FALSE(second);
        EXPECT_EQ(second.error().code, code::exists);
        EXPECT_NE(second.error().message.find("pid " + std::to_string(::getpid())), std::string::npos);
    }
    EXPECT_TRUE(lock_instance(root)) << "the lock must end with its holder";
    ASSERT_TRUE(base::remove_tree(root));
}

} // namespace
} // namespace gantry::core
