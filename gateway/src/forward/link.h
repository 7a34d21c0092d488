// The link of one I_T nexus to one process that owns volumes (nexus/forwarding.h): an iSCSI session
// as initiator. The first command opens it; after a loss it is opened again.
//
// Threads: the nexus's reactor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "forward/dialer.h"
#include "forward/forwarded_commands.h"
#include "forward/forwarded_functions.h"
#include "forward/owner_login.h"
#include "forward/peers.h"
#include "forward/stream.h"
#include "nexus/forwarding.h"
#include "nexus/nexus.h"

namespace sluice::forward {

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
  bool ended() const override { return owner_gone_at_.has_value(); }

  // Call it every limits::kTick.
  void tick();
  // The list of peers changed.
  void check_owner();
  // Nothing is left to do: closed, and all commands and functions have ended.
  bool over() const { return state_ == State::kClosed && functions_.empty(); }
  // Its session is open (for tests and reports).
  bool open() const { return stream_ && stream_->open(); }

  // --- StreamUser
  void on_open() override;
  void on_pdu(pdu::Pdu& pdu) override;
  void on_ended(Ending why) override;

 private:
  enum class State : uint8_t {
    kOpen,
    kClosing,  // the nexus has ended; the owner may still execute commands of it
    kClosed,   // on_closed_ was posted
  };
  // Of the session.
  enum class Logout : uint8_t {
    kNone,
    kRequested,  // by the owner: what is in flight is still answered
    kSent,       // by this side
  };

  Nanos now() const { return *context_.now; }
  bool closed() const { return state_ != State::kOpen; }
  bool fenced() const;
  void dial();
  void pump();
  void on_nop_in(const pdu::Pdu& pdu);
  void on_async_message(const pdu::Bhs& header);
  void violation(const char* why);
  void settle_lost(bool drained);
  void lose_stream();
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
  Logout logout_ = Logout::kNone;
  // When the owner was found gone or fenced; then no session is opened any more.
  std::optional<Nanos> owner_gone_at_;

  ForwardedCommands commands_{context_};
  ForwardedFunctions functions_{context_, commands_};

  State state_ = State::kOpen;
  std::function<void()> on_closed_;
};

}  // namespace sluice::forward
