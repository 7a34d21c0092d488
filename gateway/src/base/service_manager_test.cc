#include "base/service_manager.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

namespace sluice::service_manager {
namespace {

class ServiceManager : public testing::Test {
 protected:
  void SetUp() override {
    name_ = "@sluice-notify-" + std::to_string(getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data() + 1, name_.size() - 1);
    fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name_.size());
    ASSERT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    setenv("NOTIFY_SOCKET", name_.c_str(), 1);
  }
  void TearDown() override {
    unsetenv("NOTIFY_SOCKET");
    close(fd_);
  }
  std::string received() const {
    std::array<char, 256> text;
    const ssize_t got = recv(fd_, text.data(), text.size(), MSG_DONTWAIT);
    return got < 0 ? "" : std::string(text.data(), static_cast<size_t>(got));
  }

  std::string name_;
  int fd_ = -1;
};

TEST_F(ServiceManager, ReceivesReadyReloadingAndStoppingNotifications) {
  ready("listening");
  EXPECT_EQ(received(), "READY=1\nSTATUS=listening");
  reloading();
  EXPECT_TRUE(received().starts_with("RELOADING=1\nMONOTONIC_USEC="));
  stopping();
  EXPECT_EQ(received(), "STOPPING=1");
}

TEST_F(ServiceManager, AnAbsentServiceManagerOnlyFailsTheNotification) {
  unsetenv("NOTIFY_SOCKET");
  ready("x");
  EXPECT_EQ(received(), "");
  EXPECT_FALSE(send("@nobody-listens-here", "READY=1"));
  EXPECT_FALSE(send("", "READY=1"));
  EXPECT_FALSE(send("relative", "READY=1"));
  EXPECT_FALSE(send("/" + std::string(200, 'x'), "READY=1"));
}

}  // namespace
}  // namespace sluice::service_manager
