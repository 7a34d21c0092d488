// The commands of one link to an owner: they wait for a session, are sent, and end by the owner's
// answer or without one.
//
// If a session is lost, an unanswered command ends only when no part of it can access the medium
// any more (DESIGN R6; gateway/decisions/forwarding.md proves it). That is the case if
// - a new login of the same nexus succeeded at the same process: the old session is drained; or
// - that process is fenced; or
// - its token has expired and, for a command with several steps, the owner had the time to detect
//   the dead session.
//
// Threads: the nexus's reactor. A command that ends may start or abort other commands of the link
// within the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "commands/command.h"
#include "forward/stream.h"
#include "nexus/nexus.h"
#include "pdu/packer.h"

namespace sluice::forward {

// The owner finds a session dead that is silent for so long, or its reactor stands still, and will
// close its sockets unread.
inline constexpr Nanos kOwnerNotices =
    limits::kDiscardSilence + limits::kStallLimit + 2 * limits::kTick;

class ForwardedCommands {
 public:
  explicit ForwardedCommands(const lun::ReactorContext& context) : context_(context) {}
  ForwardedCommands(const ForwardedCommands&) = delete;

  // The command waits to be sent. False: there are too many.
  bool add(lun::Command& command, uint64_t epoch);
  bool any_waiting() const { return !waiting_.empty(); }
  bool any_sent() const { return any(Stage::kSent); }
  bool any_lost() const { return any(Stage::kLost); }
  // Sends the oldest waiting command. `token`: the owner's latest.
  void send_next(Stream& stream, uint64_t token);
  // Ends the command if it waits. True: it needs an ABORT TASK (send_aborts()).
  bool abort(lun::Command& command);

  // --- answers of the owner: null, or how the PDU breaks the protocol
  const char* on_data_in(pdu::Pdu& pdu);
  const char* on_r2t(const pdu::Pdu& pdu, Stream& stream);
  const char* on_response(const pdu::Pdu& pdu);

  // --- task management at the owner (ForwardedFunctions)
  // Calls send(lun_field, tag, cmd_sn) for each sent command that is aborted and has no ABORT TASK
  // in flight. It returns the tag of the ABORT TASK; 0: stop, it could not be sent.
  template <class F>
  void send_aborts(F&& send) {
    if (aborting_ == 0) return;
    for (const auto& entry : entries_) {
      if (!entry->command || entry->abort != Abort::kRequested) continue;
      if (entry->stage != Stage::kSent || entry->abort_tag != 0) continue;
      entry->abort_tag = send(entry->command->lun_field, entry->tag, entry->cmd_sn);
      if (entry->abort_tag == 0) return;
    }
  }
  // An ABORT TASK was answered. False: none has this tag. `rejected`: it is sent again.
  bool on_abort_response(uint32_t tag, bool rejected);
  // Ends the commands of the LUN that wait: the owner does not know them.
  void end_waiting_of(uint64_t lun_field);
  // Ends the sent commands of the LUN that are older than this CmdSN, as aborted.
  void end_sent_before(uint64_t lun_field, uint32_t cmd_sn);

  // --- without a session
  // What was sent may still arrive, and may be running.
  void lose_sent();
  // Ends the lost commands that can't access the medium any more. `all`: none can.
  void settle_lost(bool all);
  // Ends the commands that have waited for `older_than`.
  void give_up_waiting(Nanos older_than);

 private:
  enum class Stage : uint8_t {
    kWaiting,  // to be sent
    kSent,     // the owner has to answer it
    kLost,     // the session in which it was sent has ended
  };
  enum class Abort : uint8_t { kNone, kRequested };
  struct Entry {
    lun::Command* command = nullptr;  // null: free
    uint64_t epoch = 0;
    Stage stage = Stage::kWaiting;
    Abort abort = Abort::kNone;
    uint32_t index = 0;
    uint32_t tag = 0;
    uint32_t cmd_sn = 0;
    uint32_t abort_tag = 0;  // of the ABORT TASK in flight; 0: none
    uint32_t received = 0;   // bytes of data-in
    pdu::Packer packer;      // of the command's data_in
    Nanos since = 0;         // of the stage
  };

  Nanos now() const { return *context_.now; }
  bool any(Stage stage) const;
  void enter(Entry& entry, Stage to);
  Entry* take_entry();
  void forget(Entry& entry);
  Entry* find(uint32_t tag);
  Entry* find(const lun::Command& command);
  bool became_stale(Entry& entry);
  void write_data(const lun::Command& command, uint32_t bytes, Stream& stream);
  bool settled(const Entry& entry) const;
  void end_answered(Entry& entry, const pdu::Bhs& header, ByteView sense);
  void end_lost(Entry& entry);
  void end_unavailable(Entry& entry);
  void end_aborted(Entry& entry);

  const lun::ReactorContext& context_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<Entry*> free_;
  std::deque<Entry*> waiting_;  // in Stage::kWaiting
  size_t aborting_ = 0;         // number of entries with Abort::kRequested: every PDU checks it
  uint32_t sent_ = 0;           // counts sent commands, for their tags
};

}  // namespace sluice::forward
