// Where the gateway listens.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::net {

struct Portal {
  std::string address;         // "ip:port" or "[ip6]:port"; port 0 or no port selects a free one
  uint16_t tpgt = 1;           // target portal group tag (RFC 7143 §4.4.3)
  uint16_t relative_port = 1;  // relative target port identifier
  bool forwarding = false;     // for other gateways; the numbers above are then unused
};

}  // namespace sluice::net
