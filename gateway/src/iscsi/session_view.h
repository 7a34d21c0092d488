// One live session as `sluice-gateway sessions` shows it: plain values, copied out of the session
// on its reactor, so that whoever prints them touches nothing that lives.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "iscsi/login/parameters.h"

namespace sluice::iscsi {

struct SessionView {
  Parameters parameters;  // names, ISID, TPGT, authentication and all that was negotiated
  uint16_t tsih = 0;
  uint16_t cid = 0;
  std::string initiator_address;  // "192.0.2.7:51234", "[2001:db8::7]:51234"
  std::string target_address;     // the portal's end of the connection
  unsigned reactor = 0;
  std::string state = "logged-in";  // "logged-in", "logout-asked", "closing"
  Nanos uptime = 0;                 // since full feature phase
  Nanos silence = 0;                // since anything came from the initiator

  uint64_t commands = 0;        // SCSI commands taken up
  uint32_t in_flight = 0;       // of them not answered yet
  uint64_t data_out_bytes = 0;  // payload from the initiator
  uint64_t data_in_bytes = 0;   // payload to the initiator
  uint64_t received_bytes = 0;  // all that passed the socket
  uint64_t sent_bytes = 0;
  uint64_t task_functions = 0;
  uint64_t rejects = 0;
  uint32_t exp_cmd_sn = 0;
  uint32_t max_cmd_sn = 0;
  uint32_t stat_sn = 0;
};

// Asks every reactor and waits for the answers, bounded: called from the admin thread, never from
// a reactor. A reactor that doesn't answer in time contributes nothing.
using SessionLister = std::function<std::vector<SessionView>()>;

}  // namespace sluice::iscsi
