#include "forward/probe.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/log_repeats.h"

namespace sluice::forward {
namespace {

constexpr Nanos kKeepaliveInterval = 10 * kSecond;  // well within limits::kDiscoverySilence
static_assert(2 * kKeepaliveInterval < limits::kDiscoverySilence);

}  // namespace

Probe::Probe(const Surroundings& around, Dialer& dialer, Peer peer, const Nanos* now)
    : around_(around), dialer_(dialer), peer_(std::move(peer)), now_(now), last_received_(*now) {}

Probe::~Probe() {
  if (stream_) stream_->close();
}

void Probe::found(Reach reach, std::string refusal) {
  const Nanos silence = reach == Reach::kSilent ? *now_ - last_received_ : 0;
  around_.peers->found(peer_.number, peer_.incarnation,
                       {.reach = reach,
                        .silent_ms = static_cast<uint32_t>(silence / kSecond * 1000),
                        .refusal = std::move(refusal)});
}

void Probe::dial() {
  if (stream_ || *now_ < dial_at_) return;
  dial_at_ = *now_ + limits::kRedial;
  InitiatorLogin::Setup setup = login_setup(around_, peer_, key_);
  if (!setup.key.expected.configured() || setup.origin.gateway == 0) return;
  setup.initiator_name = "iqn.2026-11.dev.sluice:gateway-" + std::to_string(setup.origin.gateway);
  stream_ = std::make_shared<Stream>(*this, std::move(setup), now_);
  dialer_.dial(peer_.address, stream_);
}

void Probe::tick() {
  dial();
  if (stream_ && stream_->open()) {
    last_received_ = stream_->last_received();
    if (*now_ - keepalive_sent_ >= kKeepaliveInterval) send_keepalive();
  }
  if (*now_ - last_received_ >= limits::kPeerSilence) found(Reach::kSilent);
}

// A NOP-Out that wants no answer (RFC 7143 §11.18).
void Probe::send_keepalive() {
  keepalive_sent_ = *now_;
  pdu::Bhs& h = stream_->writer().start(pdu::Opcode::kNopOut);
  stream_->number(h, pdu::kReservedTag, true);
  h.set_flags(pdu::kFlagFinal);
  h.put32(20, pdu::kReservedTag);
  stream_->writer().finish();
  stream_->flush();
}

void Probe::on_open() {
  last_received_ = *now_;
  keepalive_sent_ = *now_;
  key_ = 0;
  found(Reach::kConnected);
}

void Probe::on_pdu(pdu::Pdu&) { last_received_ = *now_; }

void Probe::on_ended(Ending why) {
  const std::shared_ptr<Stream> gone = std::exchange(stream_, nullptr);
  switch (why) {
    case Ending::kRefused:
      last_received_ = *now_;
      found(Reach::kRefused);
      break;
    case Ending::kLoginRefused: {
      last_received_ = *now_;
      if (next_key(around_, peer_, gone->login_status(), &key_)) {
        dial_at_ = *now_;
        dial();
        break;
      }
      // Another process has the port, so this process has ended (LoginStatus::kTargetRemoved).
      if (gone->login_status() == 0x0204) {
        found(Reach::kRefused);
      } else {
        found(Reach::kConnected, gone->reason());
      }
      log::repeated(log::Level::kWarning, std::to_string(peer_.number) + " " + gone->reason(),
                    "another gateway refuses the login of this one",
                    {{"peer", peer_.number}, {"reason", gone->reason()}});
      break;
    }
    case Ending::kLost:  // a reset; what it is now, the next dial tells
      dial_at_ = *now_;
      dial();
      break;
    case Ending::kSilent:
      break;  // tick() counts
  }
}

}  // namespace sluice::forward
