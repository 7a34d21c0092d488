// Who gets in at the portals of an engine, over real sockets on loopback.
#include "net/engine.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "base/socket_address.h"
#include "pdu/bhs.h"

namespace sluice::net {
namespace {

using namespace std::string_view_literals;

class Portals : public testing::Test {
 protected:
  void TearDown() override {
    for (const int fd : open_) ::close(fd);
    if (engine_) engine_->stop(limits::kShutdownBound);
  }
  // One portal for hosts and one for gateways. False: no io_uring here.
  bool start(unsigned max_connections, unsigned max_unauthenticated,
             uint64_t descriptors = UINT64_MAX) {
    Options options;
    options.reactor_memory = limits::kMinReactorMemory;
    options.descriptors = descriptors;
    options.settings.max_connections = max_connections;
    options.settings.max_unauthenticated = max_unauthenticated;
    auto target = std::make_shared<lun::Target>("iqn.2026-11.dev.sluice.test:t", "", uint16_t{1});
    target->set_hosts({lun::HostAccess{}});
    exports_.add(std::move(target));
    auto engine = Engine::start(std::move(options), exports_);
    if (!engine) return false;
    engine_ = std::move(engine).value();
    EXPECT_TRUE(
        engine_
            ->listen({{.address = "127.0.0.1:0"}, {.address = "127.0.0.1:0", .forwarding = true}})
            .ok());
    hosts_ = engine_->addresses().at(0);
    gateways_ = engine_->addresses().at(1);
    return true;
  }
  // A connection that says nothing.
  int connect(const std::string& address, const std::string& from = {}) {
    const KernelAddress to = kernel_address(parse_socket_address(address, 0).value());
    open_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!from.empty()) {
      const KernelAddress ours = kernel_address(parse_socket_address(from, 0).value());
      EXPECT_EQ(::bind(open_.back(), ours.get(), ours.size), 0);
    }
    (void)::connect(open_.back(), to.get(), to.size);
    return open_.back();
  }
  // Whether a portal answers: true with the header of `answer`, false after a reset.
  bool ask(int fd, pdu::Bhs h, std::string_view text, pdu::Bhs* answer) {
    std::string bytes(reinterpret_cast<const char*>(h.data()), pdu::kBhsSize);
    bytes += text;
    bytes.resize(pdu::kBhsSize + pdu::padded(static_cast<uint32_t>(text.size())));
    (void)::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return ::recv(fd, answer->data(), pdu::kBhsSize, MSG_WAITALL) == pdu::kBhsSize;
  }
  // The first PDU must be a login, so any accepted connection refuses this one.
  bool lets_in(const std::string& address) {
    pdu::Bhs answer;
    return ask(connect(address), {}, {}, &answer);
  }
  // A session that stays; each is of another initiator port.
  bool log_in(const std::string& address, bool discovery = false) {
    const std::string_view keys =
        discovery ? "InitiatorName=iqn.2026-11.dev.sluice.test:host\0SessionType=Discovery\0"sv
                  : "InitiatorName=iqn.2026-11.dev.sluice.test:host\0SessionType=Normal\0"
                    "TargetName=iqn.2026-11.dev.sluice.test:t\0"sv;
    pdu::Bhs h;
    h.put8(0, 0x40 | static_cast<uint8_t>(pdu::Opcode::kLoginRequest));  // immediate
    h.set_flags(0x87);  // operational negotiation, and on to full feature phase
    h.put8(8, 0x80);    // ISID
    h.put8(13, next_isid_++);
    h.set_data_length(static_cast<uint32_t>(keys.size()));
    pdu::Bhs answer;
    return ask(connect(address), h, keys, &answer) && answer.u8(36) == 0;
  }

  // The gateway closes it soon.
  static bool closed(int fd) {
    char byte = 0;
    return ::recv(fd, &byte, 1, 0) <= 0;
  }

  lun::Exports exports_;
  uint8_t next_isid_ = 1;
  std::unique_ptr<Engine> engine_;
  std::string hosts_;
  std::string gateways_;
  std::vector<int> open_;
};

TEST_F(Portals, SilentHostsDoNotBlockOthersAndTheOldestIsClosed) {
  if (!start(100, 2)) GTEST_SKIP() << "no io_uring";
  const int oldest = connect(hosts_);
  connect(hosts_);
  EXPECT_TRUE(lets_in(hosts_));
  EXPECT_TRUE(closed(oldest));
  EXPECT_EQ(engine_->counters().total().connections_evicted, 1u);
  EXPECT_TRUE(lets_in(gateways_));
}

TEST_F(Portals, SilentHostsOfOneAddressDoNotBlockHostsOfAnother) {
  if (!start(100, 4)) GTEST_SKIP() << "no io_uring";
  for (int i = 0; i < 8; ++i) connect(hosts_, "127.0.0.2");
  EXPECT_TRUE(lets_in(hosts_));
}

TEST_F(Portals, TheMaximumNumberOfHostSessionsDoesNotBlockGateways) {
  if (!start(2, 100)) GTEST_SKIP() << "no io_uring";
  EXPECT_TRUE(log_in(hosts_));
  EXPECT_TRUE(log_in(hosts_));
  EXPECT_FALSE(lets_in(hosts_));
  EXPECT_TRUE(lets_in(gateways_));
}

TEST_F(Portals, AnUnauthenticatedDiscoverySessionIsEvictedForANewLogin) {
  if (!start(2, 100)) GTEST_SKIP() << "no io_uring";
  EXPECT_TRUE(log_in(hosts_, true));
  EXPECT_TRUE(log_in(hosts_, true));
  EXPECT_TRUE(log_in(hosts_));
}

// More than limits::kMaxForwardingUnauthenticated, as from one address.
TEST_F(Portals, SilentConnectionsToTheForwardingPortDoNotBlockGateways) {
  if (!start(100, 100)) GTEST_SKIP() << "no io_uring";
  engine_->expect_gateways({"127.0.0.5:3261", "not an address"});
  for (unsigned i = 0; i < limits::kMaxForwardingUnauthenticated + 8; ++i) connect(gateways_);
  EXPECT_TRUE(lets_in(gateways_));
  pdu::Bhs answer;
  EXPECT_TRUE(ask(connect(gateways_, "127.0.0.5:0"), {}, {}, &answer));
}

TEST_F(Portals, HostsLeaveDescriptorsForGatewaysIfDescriptorsAreScarce) {
  if (!start(100, 100, 8)) GTEST_SKIP() << "no io_uring";
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(log_in(hosts_));
  EXPECT_FALSE(lets_in(hosts_));
  EXPECT_TRUE(lets_in(gateways_));
}

TEST_F(Portals, SilentGatewaysDoNotBlockHosts) {
  if (!start(1, 1)) GTEST_SKIP() << "no io_uring";
  connect(gateways_);
  connect(gateways_);
  EXPECT_TRUE(lets_in(gateways_));
  EXPECT_TRUE(lets_in(hosts_));
}

TEST_F(Portals, ALoggedInSessionIsNotCountedAsUnauthenticated) {
  if (!start(100, 1)) GTEST_SKIP() << "no io_uring";
  ASSERT_TRUE(log_in(hosts_));
  EXPECT_TRUE(log_in(hosts_));
}

TEST_F(Portals, ARefusedLoginIsNotCountedAsUnauthenticated) {
  if (!start(100, 1)) GTEST_SKIP() << "no io_uring";
  ASSERT_TRUE(lets_in(hosts_));
  EXPECT_TRUE(lets_in(hosts_));
}

// After a FIN a peer that still sends could wait for long.
TEST_F(Portals, ADroppedConnectionEndsWithAReset) {
  if (!start(100, 100)) GTEST_SKIP() << "no io_uring";
  ASSERT_TRUE(log_in(hosts_));
  pdu::Bhs h;
  h.put8(0, 0x40 | static_cast<uint8_t>(pdu::Opcode::kNopOut));
  h.set_data_length(0xffffff);  // more than MaxRecvDataSegmentLength
  ASSERT_EQ(::send(open_.back(), h.data(), pdu::kBhsSize, MSG_NOSIGNAL), ssize_t{pdu::kBhsSize});
  char bytes[512];  // the rest of the login response comes first
  ssize_t n = 1;
  while (n > 0) n = ::recv(open_.back(), bytes, sizeof bytes, 0);
  EXPECT_EQ(n, -1);
  EXPECT_EQ(errno, ECONNRESET);
}

}  // namespace
}  // namespace sluice::net
