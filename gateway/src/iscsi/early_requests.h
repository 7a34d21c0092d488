// Requests that arrived before a gap in CmdSN (RFC 7143 §4.2.2.1). They wait until the gap is
// filled. At most one for each number of the command window, and at most kBytes of data.
//
// Threads: one reactor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "iscsi/command_window.h"
#include "pdu/framer.h"

namespace sluice::iscsi {

class EarlyRequests {
 public:
  // The window may use half of the session's memory (DESIGN R14). Requests within FirstBurstLength
  // need no more.
  static constexpr size_t kBytes = limits::kSessionMemory / 2;

  struct Request {
    uint32_t cmd_sn;
    std::unique_ptr<pdu::Pdu> pdu;  // null: cancelled, only its number counts
    Nanos arrived = 0;
  };

  bool empty() const { return requests_.empty(); }
  // Ignores a request with a number that is present already. False: the total data would exceed
  // kBytes.
  bool add(const pdu::Pdu& pdu, Nanos now);
  // Removes the request with this number; nullopt: none.
  std::optional<Request> take(uint32_t cmd_sn);
  // The request with this number must not be executed, whether it has arrived or not. Its number
  // counts as received.
  void cancel(uint32_t cmd_sn);
  bool contains(uint32_t cmd_sn) const;
  // The CmdSN of the SCSI command with this initiator task tag; nullopt: none.
  std::optional<uint32_t> cmd_sn_of(uint32_t itt) const;
  // Cancels the SCSI commands older than `before` for whose header `matches` is true.
  template <class F>
  void cancel_commands(uint32_t before, F&& matches) {
    for (Request& r : requests_) {
      if (is_command(r) && serial_less(r.cmd_sn, before) && matches(r.pdu->header)) drop_pdu(r);
    }
  }
  void clear();

 private:
  static bool is_command(const Request& r) {
    return r.pdu && r.pdu->header.opcode() == pdu::Opcode::kScsiCommand;
  }
  void drop_pdu(Request& request);

  std::vector<Request> requests_;
  size_t bytes_ = 0;  // of their data
};

}  // namespace sluice::iscsi
