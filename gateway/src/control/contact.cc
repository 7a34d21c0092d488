#include "control/contact.h"

#include "base/limits.h"

namespace sluice::control {

void Contact::stream_opened() {
  const std::lock_guard lock(mutex_);
  stream_lost_.reset();
}

void Contact::stream_lost(Nanos now) {
  const std::lock_guard lock(mutex_);
  // Later attempts to connect fail, too; the time counts from the first loss.
  if (!stream_lost_) stream_lost_ = now;
}

void Contact::reached(const std::vector<wire::PeerObserved>& peers) {
  const std::lock_guard lock(mutex_);
  lost_peers_.clear();
  for (const wire::PeerObserved& peer : peers) {
    if (peer.reach() == wire::PEER_REACH_REFUSED || peer.reach() == wire::PEER_REACH_SILENT ||
        !peer.refusal().empty()) {
      lost_peers_.insert(static_cast<uint16_t>(peer.number()));
    }
  }
}

bool Contact::cut_off_from(uint16_t owner, Nanos now) const {
  const std::lock_guard lock(mutex_);
  return stream_lost_ && now - *stream_lost_ >= limits::kCutOff && lost_peers_.contains(owner);
}

}  // namespace sluice::control
