#include "base/socket_address.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace sluice {
namespace {

TEST(SocketAddressText, IsReadAndWrittenCanonically) {
  const auto canonical = [](const char* text) {
    const Result<SocketAddress> address = parse_socket_address(text, 3260);
    return address ? address.value().text() : "";
  };
  EXPECT_EQ(canonical("192.0.2.1"), "192.0.2.1:3260");
  EXPECT_EQ(canonical("192.0.2.1:0"), "192.0.2.1:0");
  EXPECT_EQ(canonical("[2001:DB8::1]:65535"), "[2001:db8::1]:65535");
  EXPECT_EQ(canonical("2001:db8::1"), "[2001:db8::1]:3260");
  for (const char* bad : {"", ":", ":3260", "192.0.2:1", "192.0.2.1:", "192.0.2.1:65536",
                          "192.0.2.1:1x", "[::1", "[::1]x", "[192.0.2.1]:1", "::g", "a:b:c"}) {
    EXPECT_EQ(canonical(bad), "") << bad;
  }
}

std::string through_the_kernels_form(const char* text) {
  const Result<SocketAddress> address = parse_socket_address(text, 0);
  return address ? kernel_address_text(kernel_address(address.value()).storage) : address.error();
}

TEST(SocketAddressText, IsUnchangedAfterConversionToTheKernelForm) {
  for (const char* text : {"192.0.2.1:3260", "0.0.0.0:0", "[2001:db8::1]:65535", "[::]:3260"}) {
    EXPECT_EQ(through_the_kernels_form(text), text);
  }
}

TEST(SocketAddressText, Ipv4OnADualStackSocketIsWrittenAsIpv4) {
  EXPECT_EQ(through_the_kernels_form("[::ffff:192.0.2.1]:3260"), "192.0.2.1:3260");
}

TEST(SocketAddressText, ANetworkIsAnIpv4AddressOrTheUpperHalfOfAnIpv6Address) {
  const auto network = [](const char* text) {
    return kernel_address_network(kernel_address(parse_socket_address(text, 0).value()).storage);
  };
  EXPECT_EQ(network("192.0.2.1:1"), network("192.0.2.1:2"));
  EXPECT_NE(network("192.0.2.1"), network("192.0.2.2"));
  EXPECT_EQ(network("::ffff:192.0.2.1"), network("192.0.2.1"));
  EXPECT_EQ(network("2001:db8:0:1::1"), network("2001:db8:0:1:ffff::2"));
  EXPECT_NE(network("2001:db8:0:1::1"), network("2001:db8:0:2::1"));
  EXPECT_EQ(kernel_address_network({}), "");
}

TEST(SocketAddressText, ReportsBothEndsOfASocket) {
  const KernelAddress address = kernel_address(parse_socket_address("127.0.0.1:0", 0).value());
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(listener, 0);
  ASSERT_EQ(bind(listener, address.get(), address.size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  EXPECT_EQ(peer_address(listener), "unknown");
  const KernelAddress there =
      kernel_address(parse_socket_address(local_address(listener), 0).value());
  const int host = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_GE(host, 0);
  ASSERT_EQ(connect(host, there.get(), there.size), 0);
  EXPECT_EQ(peer_address(host), local_address(listener));
  close(host);
  close(listener);
}

TEST(SocketAddressText, AnInvalidOrUnixSocketHasAnUnknownAddress) {
  EXPECT_EQ(local_address(-1), "unknown");
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  EXPECT_EQ(local_address(pair[0]), "unknown");
  close(pair[0]);
  close(pair[1]);
}

}  // namespace
}  // namespace sluice
