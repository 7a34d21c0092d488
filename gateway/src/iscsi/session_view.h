// One live session for `sluice-gateway sessions`: values that are copied on the session's reactor,
// so that printing needs no live objects.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "iscsi/login/parameters.h"

namespace sluice::iscsi {

struct SessionView {
  Parameters parameters;  // names, ISID, TPGT, authentication and all negotiated values
  uint16_t tsih = 0;
  uint16_t cid = 0;
  std::string initiator_address;  // "192.0.2.7:51234", "[2001:db8::7]:51234"
  std::string target_address;     // local address of the connection
  unsigned reactor = 0;
  std::string state = "logged-in";  // "logged-in", "logout-asked", "closing"
  Nanos uptime = 0;                 // time since the full feature phase began
  Nanos silence = 0;                // time since the last byte from the initiator

  uint64_t commands = 0;        // accepted SCSI commands
  uint64_t reads = 0;           // READ commands among them
  uint64_t writes = 0;          // WRITE commands among them
  uint32_t in_flight = 0;       // commands without a response
  uint64_t answered = 0;        // commands with a response
  Nanos answered_time = 0;      // sum of their durations, from arrival to response
  uint64_t data_out_bytes = 0;  // payload from the initiator
  uint64_t data_in_bytes = 0;   // payload to the initiator
  uint64_t received_bytes = 0;  // all bytes received by the socket
  uint64_t sent_bytes = 0;
  uint64_t task_functions = 0;
  uint64_t rejects = 0;
  uint32_t exp_cmd_sn = 0;
  uint32_t max_cmd_sn = 0;
  uint32_t stat_sn = 0;
};

// Queries every reactor and waits for the answers, for a bounded time. For the admin thread, never
// for a reactor. Sessions of a reactor that does not answer in time are missing.
using SessionLister = std::function<std::vector<SessionView>()>;

}  // namespace sluice::iscsi
