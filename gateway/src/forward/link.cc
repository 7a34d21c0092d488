#include "forward/link.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/log_repeats.h"
#include "commands/handler.h"
#include "iscsi/forwarding_wire.h"
#include "nexus/exports.h"

namespace sluice::forward {

using pdu::Opcode;
using scsi::Sense;
using scsi::SenseKey;

LinkToOwner::LinkToOwner(const Surroundings& around, Dialer& dialer,
                         const std::shared_ptr<lun::Nexus>& nexus, Peer owner, uint64_t incarnation)
    : around_(around),
      dialer_(dialer),
      context_(nexus->reactor_context()),
      id_(nexus->id()),
      target_(nexus->target().iqn()),
      read_only_(nexus->read_only()),
      host_since_(nexus->host_since()),
      owner_(std::move(owner)),
      incarnation_(incarnation) {}

LinkToOwner::~LinkToOwner() {
  if (stream_) stream_->close();
}

bool LinkToOwner::fenced() const {
  return around_.access->fenced(owner_.number, owner_.incarnation);
}

void LinkToOwner::start(lun::Command& command, uint64_t epoch) {
  const auto alive = shared_from_this();
  if (ended() || closed()) {
    return lun::finish_sense(command, Sense::make(SenseKey::kNotReady, 0x04, 0x0a));
  }
  if (!commands_.add(command, epoch)) return lun::finish_status(command, scsi::Status::kBusy);
  pump();
}

void LinkToOwner::dial() {
  if (stream_ || ended() || now() < redial_at_) return;
  redial_at_ = now() + limits::kRedial;
  InitiatorLogin::Setup setup = login_setup(around_, owner_, key_);
  setup.initiator_name = id_.initiator_name;
  setup.isid = id_.isid;
  setup.target_name = target_;
  setup.origin.tpgt = id_.target_portal_group;
  setup.origin.relative_port = id_.relative_target_port;
  setup.origin.nexus = incarnation_;
  setup.origin.read_only = read_only_;
  setup.host_age = now() - host_since_;
  token_ = 0;
  logout_ = Logout::kNone;
  stream_ = std::make_shared<Stream>(*this, std::move(setup), context_.now);
  dialer_.dial(owner_.address, stream_);
}

void LinkToOwner::pump() {
  if (!open()) return dial();
  if (token_ == 0) return;  // it comes right after the login
  functions_.send_all(*stream_);
  // A command that ends instead of being sent may end the session.
  while (open() && commands_.any_waiting() && logout_ == Logout::kNone && stream_->window_open()) {
    commands_.send_next(*stream_, token_);
  }
  if (stream_) stream_->flush();
}

void LinkToOwner::on_open() {
  const auto alive = shared_from_this();
  key_ = 0;
  log::info("forwarding session opened",
            {{"owner", owner_.number}, {"initiator", id_.initiator_name}, {"target", target_}});
  // The login was answered by the very process, once the nexus before it had ended. Commands that
  // are detached there hold their blocks.
  settle_lost(true);
  if (closed()) return log_out();
  pump();
}

void LinkToOwner::violation(const char* why) {
  log::error("an owner breaks the protocol", {{"owner", owner_.number}, {"reason", why}});
  if (stream_) stream_->drop(why);
}

void LinkToOwner::on_pdu(pdu::Pdu& pdu) {
  const auto alive = shared_from_this();
  const pdu::Bhs& h = pdu.header;
  const char* broken = nullptr;
  switch (h.opcode()) {
    case Opcode::kNopIn:
      on_nop_in(pdu);
      break;
    case Opcode::kDataIn:
      broken = commands_.on_data_in(pdu);
      break;
    case Opcode::kR2t:
      broken = commands_.on_r2t(pdu, *stream_);
      break;
    case Opcode::kScsiResponse:
      broken = commands_.on_response(pdu);
      break;
    case Opcode::kTaskManagementResponse:
      functions_.on_response(h);
      break;
    case Opcode::kLogoutResponse:
      lose_stream();
      settle_lost(true);
      break;
    case Opcode::kAsyncMessage:
      if (h.u8(36) != static_cast<uint8_t>(pdu::AsyncEvent::kLogoutRequest)) {
        return violation("an asynchronous message that ends the session");
      }
      if (logout_ == Logout::kNone) logout_ = Logout::kRequested;
      break;
    default:
      // Also for a Reject: an owner that rejects correct requests is not a valid peer.
      return violation("a PDU that has no place here");
  }
  if (broken) violation(broken);
  if (!closed()) pump();
  if (logout_ != Logout::kRequested || !open()) return;
  if (!commands_.any_sent() && !functions_.any_sent()) log_out();
}

void LinkToOwner::on_nop_in(const pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  if (h.target_transfer_tag() == pdu::kReservedTag) {
    if (pdu.data_size != iscsi::kTokenSize) return;  // it only tells the window
    std::array<uint8_t, iscsi::kTokenSize> token;
    size_t at = 0;
    for (const Slice& piece : pdu.data) {
      std::memcpy(token.data() + at, piece.data, piece.size);
      at += piece.size;
    }
    token_ = load_be64(token.data());
    return;
  }
  pdu::Bhs& answer = stream_->writer().start(Opcode::kNopOut);
  stream_->number(answer, pdu::kReservedTag, true);
  answer.set_flags(pdu::kFlagFinal);
  answer.set_lun(h.lun());
  answer.put32(20, h.target_transfer_tag());
  stream_->writer().finish();
  stream_->flush();
}

void LinkToOwner::on_ended(Ending why) {
  const auto alive = shared_from_this();
  const bool another_key =
      why == Ending::kLoginRefused && next_key(around_, owner_, stream_->login_status(), &key_);
  if (why == Ending::kLoginRefused && !another_key) {
    log::repeated(log::Level::kWarning, std::to_string(owner_.number) + " " + stream_->reason(),
                  "a gateway refuses to be forwarded to",
                  {{"owner", owner_.number}, {"reason", stream_->reason()}});
  }
  lose_stream();
  if (another_key) redial_at_ = 0;
  if ((why == Ending::kLost || another_key) && !closed() &&
      (commands_.any_lost() || commands_.any_waiting())) {
    dial();
  }
}

void LinkToOwner::lose_stream() {
  const std::shared_ptr<Stream> gone = std::exchange(stream_, nullptr);
  if (gone) gone->close();
  token_ = 0;
  commands_.lose_sent();
  functions_.session_lost();
  if (closed() && !commands_.any_lost()) finish_close();
}

// `drained`: at the owner nothing is left of the sessions before this one.
void LinkToOwner::settle_lost(bool drained) {
  commands_.settle_lost(drained || fenced());
  if (!closed() || open() || commands_.any_lost()) return;
  if (stream_) return lose_stream();  // it was to prove what time has proven
  finish_close();
}

void LinkToOwner::tick() {
  const auto alive = shared_from_this();
  settle_lost(false);
  // The owner answers them no more, and their commands have ended.
  if (ended() && now() - *owner_gone_at_ >= kOwnerNotices) functions_.end_all();
  if (closed()) {
    if (!stream_ && commands_.any_lost()) dial();
    return;
  }
  if (!open()) {
    commands_.give_up_waiting(limits::kHoldCommands);
    if (!ended()) functions_.give_up_resets(limits::kHoldCommands);
  }
  const bool wanted = commands_.any_waiting() || !functions_.empty() || commands_.any_lost();
  if (open() || wanted) pump();
}

void LinkToOwner::check_owner() {
  const auto alive = shared_from_this();
  const std::optional<Peer> known = around_.peers->find(owner_.number);
  const bool same = known && known->incarnation == owner_.incarnation &&
                    known->address == owner_.address && !known->fenced;
  if (same && !fenced()) return;
  if (!ended()) owner_gone_at_ = now();
  lose_stream();
  settle_lost(false);
  commands_.give_up_waiting(0);
  if (fenced()) functions_.end_all();
}

void LinkToOwner::abort(lun::Command& command) {
  const auto alive = shared_from_this();
  if (commands_.abort(command) && open()) functions_.send_all(*stream_);
}

void LinkToOwner::function(lun::LinkFunction kind, uint64_t lun_field,
                           std::function<void(bool)> done) {
  const auto alive = shared_from_this();
  // The function does not concern commands that the owner has not received.
  commands_.end_waiting_of(lun_field);
  functions_.add(kind, lun_field, std::move(done));
  if (fenced()) return functions_.end_all();
  if (!closed()) pump();
}

// RFC 7143 §11.14: reason 0, close the session. The owner answers when the nexus has ended.
void LinkToOwner::log_out() {
  logout_ = Logout::kSent;
  pdu::Bhs& h = stream_->writer().start(Opcode::kLogoutRequest);
  stream_->number(h, functions_.next_tag(), true);
  h.set_flags(pdu::kFlagFinal);
  stream_->writer().finish();
  stream_->flush();
}

// The origin reports the loss of a nexus to its host: its next nexus has 29/07 pending there. A
// nexus that ends has aborted its commands. A nexus that continues, with another process as owner,
// has not aborted them. They and the task management functions are answered when the owner can no
// longer execute them.
void LinkToOwner::close(bool, std::function<void()> done) {
  const auto alive = shared_from_this();
  state_ = State::kClosing;
  on_closed_ = std::move(done);
  if (!ended()) functions_.clear();
  commands_.give_up_waiting(0);
  if (open()) return log_out();
  if (stream_) lose_stream();  // still logging in: it had nothing to lose
  if (!commands_.any_lost()) finish_close();
}

void LinkToOwner::finish_close() {
  if (state_ != State::kClosing) return;
  state_ = State::kClosed;
  context_.reactors->post(context_.reactor, std::exchange(on_closed_, nullptr));
}

}  // namespace sluice::forward
