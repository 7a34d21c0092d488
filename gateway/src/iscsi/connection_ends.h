// The two ends of a connection, as its carrier knows them.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::iscsi {

struct ConnectionEnds {
  uint16_t tpgt = 1;  // of the portal
  uint16_t relative_port = 1;
  std::string local_address;  // "ip:port"
  std::string peer_address;
  std::string peer_network = {};  // kernel_address_network() of the peer's address
  bool forwarding = false;        // a portal for gateways (forwarding_wire.h)
};

}  // namespace sluice::iscsi
