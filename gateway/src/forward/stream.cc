#include "forward/stream.h"

#include "base/limits.h"

namespace sluice::forward {
namespace {

using pdu::Opcode;
using Event = pdu::Framer::Event;

constexpr uint32_t kLoginTag = 1;

bool serial_at_most(uint32_t a, uint32_t b) { return static_cast<int32_t>(b - a) >= 0; }

// Whether StatSN of the PDU counts (RFC 7143 §11.7, §11.8, §11.19: there it says what is next).
bool takes_stat_sn(const pdu::Bhs& h) {
  switch (h.opcode()) {
    case Opcode::kR2t:
      return false;
    case Opcode::kNopIn:
      return h.itt() != pdu::kReservedTag;
    case Opcode::kDataIn:
      return h.flags() & pdu::kFlagStatus;
    default:
      return true;
  }
}

}  // namespace

Stream::Stream(StreamUser& user, InitiatorLogin::Setup setup, const Nanos* now)
    : user_(&user),
      login_(std::move(setup)),
      now_(now),
      writer_(out_),
      since_(*now),
      last_received_(*now) {}

void Stream::connected(iscsi::Transport& transport) {
  transport_ = &transport;
  if (state_ != State::kDialled)
    return transport.close(true);  // its user has no use for it any more
  state_ = State::kLogin;
  since_ = last_received_ = *now_;
  send_login(login_.first());
}

void Stream::unreachable(bool refused) { end(refused ? Ending::kRefused : Ending::kSilent); }

void Stream::send_login(const InitiatorLogin::Request& request) {
  pdu::Bhs& h = writer_.start(Opcode::kLoginRequest);
  h.put8(0, static_cast<uint8_t>(Opcode::kLoginRequest) | 0x40);
  h.set_flags(request.flags);
  std::memcpy(h.data() + 8, login_.isid().data(), login_.isid().size());
  h.set_itt(kLoginTag);
  h.put32(24, cmd_sn_);
  h.put32(28, exp_stat_sn_);
  writer_.copy(as_bytes(request.text));
  writer_.finish();
  flush();
}

void Stream::receive(Slice bytes) {
  last_received_ = *now_;
  while (state_ == State::kLogin || state_ == State::kOpen) {
    const Event event = framer_.next(bytes);
    if (event == Event::kNeedMore) return;
    on_event(event);
    framer_.pdu().data.clear();
  }
}

void Stream::on_event(Event event) {
  if (event != Event::kPdu) return drop("what the peer sends is damaged");
  pdu::Pdu& pdu = framer_.pdu();
  if (state_ == State::kLogin) return on_login_response(pdu);
  note_numbers(pdu.header);
  if (user_) user_->on_pdu(pdu);
}

void Stream::note_numbers(const pdu::Bhs& h) {
  if (takes_stat_sn(h)) exp_stat_sn_ = h.u32(24) + 1;
  // RFC 7143 §4.2.2.1: a window that contradicts itself, or moves back, is ignored.
  const uint32_t expected = h.u32(28);
  const uint32_t max = h.u32(32);
  if (serial_at_most(expected, max + 1) && serial_at_most(max_cmd_sn_, max)) max_cmd_sn_ = max;
}

void Stream::on_login_response(pdu::Pdu& pdu) {
  const pdu::Bhs& h = pdu.header;
  if (h.opcode() != Opcode::kLoginResponse) return drop("not a login response");
  exp_stat_sn_ = h.u32(24) + 1;
  std::string text;
  for (const Slice& s : pdu.data) text.append(as_text({s.data, s.size}));
  InitiatorLogin::Request next;
  switch (login_.on_response(h, text, &next)) {
    case InitiatorLogin::Outcome::kGoOn:
      return send_login(next);
    case InitiatorLogin::Outcome::kFailed:
      reason_ = login_.reason();
      if (transport_) transport_->close(true);
      return end(Ending::kLoginRefused);
    case InitiatorLogin::Outcome::kDone:
      break;
  }
  const iscsi::Parameters& p = login_.parameters();
  state_ = State::kOpen;
  since_ = *now_;
  max_cmd_sn_ = h.u32(32);
  framer_.set_max_segment(p.max_recv_data_segment_length);
  framer_.set_digests(p.header_digest, p.data_digest);
  writer_.set_digests(p.header_digest, p.data_digest);
  if (user_) user_->on_open();
}

void Stream::number(pdu::Bhs& request, uint32_t itt, bool immediate) {
  if (immediate) request.put8(0, request.u8(0) | 0x40);
  request.set_itt(itt);
  request.put32(24, immediate ? cmd_sn_ : cmd_sn_++);
  request.put32(28, exp_stat_sn_);
}

bool Stream::window_open() const { return serial_at_most(cmd_sn_, max_cmd_sn_); }

void Stream::flush() {
  if (transport_ && state_ != State::kOver) transport_->schedule_flush();
}

void Stream::close() {
  user_ = nullptr;
  if (transport_ && state_ != State::kOver) transport_->close(true);
  end(Ending::kLost);
}

void Stream::on_closed() { end(state_ == State::kOpen ? Ending::kLost : Ending::kRefused); }

void Stream::tick() {
  if (state_ == State::kLogin && *now_ - since_ >= limits::kForwardingLogin) {
    reason_ = "no answer to the login";
    transport_->close(true);
    return end(Ending::kSilent);
  }
  // The owner sends a token every limits::kTokenInterval: silence is not idleness.
  if (state_ == State::kOpen && *now_ - last_received_ >= limits::kPeerSilence) {
    reason_ = "nothing was heard";
    transport_->close(true);
    return end(Ending::kSilent);
  }
}

void Stream::drop(std::string why) {
  reason_ = std::move(why);
  if (transport_ && state_ != State::kOver) transport_->close(true);
  end(state_ == State::kOpen ? Ending::kLost : Ending::kSilent);
}

void Stream::end(Ending why) {
  if (state_ == State::kOver) return;
  state_ = State::kOver;
  framer_.pdu().data.clear();
  transport_ = nullptr;
  StreamUser* user = std::exchange(user_, nullptr);
  if (user) user->on_ended(why);
}

}  // namespace sluice::forward
