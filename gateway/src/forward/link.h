// The link of one I_T nexus to one process that owns volumes (nexus/forwarding.h): an iSCSI session
// as initiator. The first command opens it; after a loss it is opened again.
//
// - link.cc: commands wait, are sent, end; the life of the session
// - link_answers.cc: the owner's answers
// - link_functions.cc: aborts, task management, the end of the nexus
//
// If a session is lost, an unanswered command ends only when no part of it can access the medium
// any more (DESIGN R6; gateway/decisions/forwarding.md proves it). That is the case if
// - a new login of the same nexus succeeded at the same process: the old session is drained; or
// - that process is fenced; or
// - its token has expired and, for a command with several steps, the owner had the time to detect
//   the dead session.
//
// Threads: the nexus's reactor.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "forward/peers.h"
#include "forward/stream.h"
#include "iscsi/login/forwarding_access.h"
#include "nexus/forwarding.h"
#include "nexus/nexus.h"
#include "pdu/packer.h"

namespace sluice::forward {

// The parts of its gateway that a link uses. They outlive it.
struct Surroundings {
  Peers* peers = nullptr;
  iscsi::ForwardingAccess* access = nullptr;
  std::function<void(uint8_t* out, size_t n)> random;
  iscsi::Offer offer;
};

// The login of a session at `owner`, with the key number `key` in the order of preference, or the
// last key if there are fewer.
InitiatorLogin::Setup login_setup(const Surroundings& around, const Peer& owner, size_t key);
// After a refused login: selects the next key, if the owner refused this one. False: there is none;
// start again with the first after limits::kRedial.
bool next_key(const Surroundings& around, const Peer& owner, uint16_t status, size_t* key);

class LinkToOwner final : public lun::Link,
                          public StreamUser,
                          public std::enable_shared_from_this<LinkToOwner> {
 public:
  LinkToOwner(const Surroundings& around, Dialer& dialer, const std::shared_ptr<lun::Nexus>& nexus,
              Peer owner, uint64_t incarnation);
  ~LinkToOwner() override;

  // --- lun::Link
  void start(lun::Command& command, uint64_t epoch) override;
  void abort(lun::Command& command) override;
  void function(lun::LinkFunction function, uint64_t lun_field,
                std::function<void(bool carried_out)> done) override;
  void close(bool lost, std::function<void()> done) override;
  bool ended() const override { return ended_; }

  // Call it every limits::kTick.
  void tick();
  // The list of peers changed.
  void check_owner();
  // Nothing is left to do: closed, and all commands and functions have ended.
  bool over() const { return closed_ && !on_closed_ && functions_.empty(); }
  // Its session is open (for tests and reports).
  bool open() const { return stream_ && stream_->open(); }

  // --- StreamUser
  void on_open() override;
  void on_pdu(pdu::Pdu& pdu) override;
  void on_ended(Ending why) override;

 private:
  struct Entry {
    lun::Command* command = nullptr;  // null: free
    uint64_t epoch = 0;
    enum class Stage : uint8_t { kWaiting, kSent, kLost };
    Stage stage = Stage::kWaiting;
    bool aborting = false;
    uint32_t index = 0;
    uint32_t tag = 0;
    uint32_t cmd_sn = 0;
    uint32_t abort_tag = 0;  // of the ABORT TASK in flight; 0: none
    uint32_t received = 0;   // bytes of data-in
    pdu::Packer packer;      // of the command's data_in
    Nanos since = 0;         // of the stage
  };
  struct Function {
    lun::LinkFunction kind;
    uint64_t lun_field = 0;
    std::function<void(bool)> done;
    uint32_t tag = 0;  // 0: not sent
    uint32_t cmd_sn = 0;
    Nanos since = 0;  // since when it waits to be sent
  };

  // --- link.cc
  Nanos now() const { return *context_.now; }
  Entry* take_entry();
  void forget(Entry& entry);
  // False: it already was.
  bool mark_aborting(Entry& entry);
  Entry* find(uint32_t tag);
  Entry* find(const lun::Command& command);
  void dial();
  void pump();
  bool send_command(Entry& entry);
  void give_up_waiting(Nanos older_than);
  void settle_lost(bool drained);
  bool settled(const Entry& entry) const;
  void end_lost(Entry& entry);
  void end_unavailable(Entry& entry);
  void end_aborted(Entry& entry);
  bool fenced() const;
  bool anything_lost() const;
  void lose_stream();

  // --- link_answers.cc
  void on_nop_in(const pdu::Pdu& pdu);
  void on_data_in(pdu::Pdu& pdu);
  void on_r2t(const pdu::Pdu& pdu);
  void on_response(const pdu::Pdu& pdu);
  void end_answered(Entry& entry, const pdu::Bhs& header, ByteView sense);
  void violation(const char* why);

  // --- link_functions.cc
  void pump_functions();
  bool send_function(uint8_t function, uint64_t lun_field, uint32_t about, uint32_t about_cmd_sn,
                     uint32_t* tag, uint32_t* cmd_sn);
  void on_function_response(const pdu::Bhs& header);
  void end_functions();
  void give_up_resets(Nanos older_than);
  void log_out();
  void finish_close();

  const Surroundings& around_;
  Dialer& dialer_;
  const lun::ReactorContext context_;
  const lun::NexusId id_;
  const std::string target_;
  const bool read_only_;
  const Nanos host_since_;
  const Peer owner_;
  const uint64_t incarnation_;

  std::shared_ptr<Stream> stream_;
  Nanos redial_at_ = 0;
  size_t key_ = 0;      // index of the key of the next login
  uint64_t token_ = 0;  // the latest; 0: none in this session yet
  bool ended_ = false;
  Nanos ended_at_ = 0;
  bool leaving_ = false;  // the owner requested a logout

  std::vector<std::unique_ptr<Entry>> entries_;
  std::vector<Entry*> free_;
  std::deque<Entry*> waiting_;
  size_t aborting_ = 0;  // number of `aborting` entries: every PDU checks it
  std::deque<Function> functions_;
  uint32_t functions_sent_ = 0;
  uint32_t next_tag_ = 0;

  bool closed_ = false;
  bool logout_sent_ = false;
  std::function<void()> on_closed_;
};

}  // namespace sluice::forward
