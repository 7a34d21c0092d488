#include "rbd/rados_client.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <string>

namespace sluice::rbd {
namespace {

using testing::HasSubstr;

// Takes connections and says nothing.
class SilentMonitor {
 public:
  SilentMonitor() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, generic, size), 0);
    EXPECT_EQ(listen(socket_, 64), 0);
    EXPECT_EQ(getsockname(socket_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~SilentMonitor() {
    close(peer_);
    close(socket_);
  }
  SilentMonitor(const SilentMonitor&) = delete;
  SilentMonitor& operator=(const SilentMonitor&) = delete;

  backend::CephAccess access() const {
    return {.config_file = "",
            .monitors = "v2:127.0.0.1:" + std::to_string(port_),
            .user = "gateway",
            .keyring_file = "",
            .key = "AQBZqyBpAAAAABAAq0sQm2PnbWLpQMXXHYXl2A=="};
  }
  void wait_for_a_client() { peer_ = accept(socket_, nullptr, nullptr); }

 private:
  const int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int peer_ = -1;
  uint16_t port_ = 0;
};

TEST(RadosClient, AnUnresponsiveClusterDoesNotDelayAConnectionToAnother) {
  SilentMonitor monitor;
  auto silent = std::async(std::launch::async,
                           [access = monitor.access()] { return RadosClient::shared(access); });
  monitor.wait_for_a_client();
  backend::CephAccess other = monitor.access();
  other.config_file = "/there/is/no/such";
  EXPECT_THAT(RadosClient::shared(other).error(), HasSubstr("can't read its configuration"));
  EXPECT_EQ(silent.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_THAT(silent.get().error(), HasSubstr("no monitor answered within 10 s"));
}

}  // namespace
}  // namespace sluice::rbd
