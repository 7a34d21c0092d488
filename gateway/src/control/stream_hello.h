// The part of the hello that describes the gateway itself (gateway_stream.proto, StreamHello),
// without the state that it holds.
#pragma once

#include "control/client.h"
#include "control/local/record.h"
#include "control/wire.h"

namespace sluice::control {

inline constexpr uint32_t kProtocol = 1;

inline wire::StreamHello new_hello(const ClientSetup& setup, const Holder& self) {
  wire::StreamHello hello;
  hello.set_gateway(setup.gateway);
  hello.set_incarnation(setup.incarnation);
  hello.set_node(setup.node);
  hello.set_boot_id(self.boot_id);
  hello.set_pid(self.pid);
  hello.set_pid_start_time(self.start_time);
  hello.set_software_version(setup.version);
  hello.set_min_protocol(kProtocol);
  hello.set_max_protocol(kProtocol);
  hello.add_capabilities("local");
  hello.add_capabilities("reflink");
  hello.add_capabilities("pairwise-keys");
  if (setup.rbd) hello.add_capabilities("rbd");
  return hello;
}

}  // namespace sluice::control
