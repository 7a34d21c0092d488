// The part of the hello that describes the gateway itself (gateway_stream.proto, StreamHello),
// without the state that it holds.
#pragma once

#include <string>

#include "control/local/record.h"
#include "control/wire.h"

namespace sluice::control {

inline constexpr uint32_t kProtocol = 1;

struct GatewayIdentity {
  std::string name;  // of the Gateway object
  std::string node;
  std::string version;      // of this software
  std::string incarnation;  // random_id()
};

// `has_rbd`: this gateway can use Ceph pools.
inline wire::StreamHello new_hello(const GatewayIdentity& gateway, const Holder& process,
                                   bool has_rbd) {
  wire::StreamHello hello;
  hello.set_gateway(gateway.name);
  hello.set_incarnation(gateway.incarnation);
  hello.set_node(gateway.node);
  hello.set_boot_id(process.boot_id);
  hello.set_pid(process.pid);
  hello.set_pid_start_time(process.start_time);
  hello.set_software_version(gateway.version);
  hello.set_min_protocol(kProtocol);
  hello.set_max_protocol(kProtocol);
  hello.add_capabilities("local");
  hello.add_capabilities("reflink");
  hello.add_capabilities("pairwise-keys");
  if (has_rbd) hello.add_capabilities("rbd");
  return hello;
}

}  // namespace sluice::control
