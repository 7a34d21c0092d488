// The task management functions of one link to an owner (RFC 7143 §11.5), and the ABORT TASKs of
// its commands.
//
// Threads: the nexus's reactor.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>

#include "base/clock.h"
#include "forward/forwarded_commands.h"
#include "forward/stream.h"
#include "nexus/forwarding.h"
#include "nexus/nexus.h"

namespace sluice::forward {

class ForwardedFunctions {
 public:
  ForwardedFunctions(const lun::ReactorContext& context, ForwardedCommands& commands)
      : context_(context), commands_(commands) {}
  ForwardedFunctions(const ForwardedFunctions&) = delete;

  // The function waits to be sent. `done` as in lun::Link::function().
  void add(lun::LinkFunction kind, uint64_t lun_field, std::function<void(bool)> done);
  bool empty() const { return functions_.empty(); }
  bool any_sent() const { return sent_ != 0; }
  // Sends the ABORT TASKs of aborted commands, and the functions that wait, as far as the owner's
  // limit permits.
  void send_all(Stream& stream);
  void on_response(const pdu::Bhs& header);
  // A tag for a request of the link beside SCSI commands.
  uint32_t next_tag();

  // The session ended: the functions wait to be sent again.
  void session_lost();
  // Ends all, as not carried out.
  void end_all();
  // Ends the resets that have waited for `older_than`, as not carried out.
  void give_up_resets(Nanos older_than);
  // Drops all. Their `done` is not called.
  void clear() { functions_.clear(); }

 private:
  struct Function {
    lun::LinkFunction kind;
    uint64_t lun_field = 0;
    std::function<void(bool)> done;
    uint32_t tag = 0;  // 0: not sent
    uint32_t cmd_sn = 0;
    Nanos since = 0;  // since when it waits to be sent
  };
  // Of a request; tag 0: there are too many.
  struct Sent {
    uint32_t tag = 0;
    uint32_t cmd_sn = 0;
  };

  Nanos now() const { return *context_.now; }
  Sent send(Stream& stream, pdu::TaskFunction function, uint64_t lun_field, uint32_t about,
            uint32_t about_cmd_sn);
  void post(std::function<void(bool)> done, bool carried_out);

  const lun::ReactorContext& context_;
  ForwardedCommands& commands_;
  std::deque<Function> functions_;
  uint32_t sent_ = 0;  // number of requests in flight, ABORT TASKs included
  uint32_t last_tag_ = 0;
};

}  // namespace sluice::forward
