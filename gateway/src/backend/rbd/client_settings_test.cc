#include "rbd/client_settings.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>

#include "backend/test_storage.h"
#include "base/limits.h"

namespace sluice::rbd {
namespace {

// A client that isn't connected.
class ClientSettings : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(rados_create2(&cluster_, "ceph", "client.gateway", 0), 0);
    std::ofstream file(access_.config_file);
    file << "[global]\nobjecter_inflight_ops = 7\nobjecter_inflight_op_bytes = 7\n";
  }
  ~ClientSettings() override { rados_shutdown(cluster_); }
  uint64_t number(const char* name) const {
    std::array<char, 64> value{};
    EXPECT_EQ(rados_conf_get(cluster_, name, value.data(), value.size()), 0) << name;
    return std::stoull(value.data());
  }

  backend::ScratchDirectory scratch_{"/var/tmp"};
  backend::CephAccess access_{.config_file = scratch_.file("ceph.conf"),
                              .monitors = "192.0.2.1",
                              .user = "gateway",
                              .keyring_file = "",
                              .key = ""};
  rados_t cluster_ = nullptr;
};

// Or a pool that hangs stops all others of its client, and the reactors that ask them.
TEST_F(ClientSettings, LibradosLimitsCoverAllRequestsThatHostsMayHaveInFlight) {
  const Result<void> configured = configure(cluster_, access_);
  ASSERT_TRUE(configured) << configured.error();
  // Each of them in two objects of an image.
  EXPECT_GE(number("objecter_inflight_ops"),
            uint64_t{2} * limits::kMaxConnections * limits::kDefaultCommandWindow);
  // One image, whose every request is the longest UNMAP, in objects of the usual 4 MiB.
  EXPECT_GE(number("objecter_inflight_ops"),
            uint64_t{limits::kMaxImageRequests} * (limits::kMaxUnmapBytes >> 22));
  EXPECT_GE(number("objecter_inflight_op_bytes"),
            uint64_t{limits::kMaxReactors} * limits::kMaxReactorMemory);
}

}  // namespace
}  // namespace sluice::rbd
