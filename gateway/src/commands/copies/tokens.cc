#include "commands/copies/tokens.h"

#include <algorithm>

#include "base/limits.h"
#include "base/random_bytes.h"
#include "unit/unit.h"

namespace sluice::lun {
namespace {

using scsi::Sense;
using scsi::SenseKey;

Sense invalid_token(uint8_t ascq) { return Sense::make(SenseKey::kIllegalRequest, 0x23, ascq); }

// No early way out: the time tells nothing about a guess.
bool same_secret(const std::array<uint8_t, 32>& a, const std::array<uint8_t, 32>& b) {
  volatile uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference = difference | (a[i] ^ b[i]);
  return difference == 0;
}

// E4h identification descriptor CSCD descriptor (SPC-5 §6.4.5.3) of the token's creator.
std::array<uint8_t, 32> creator_cscd(const Unit& unit) {
  std::array<uint8_t, 32> cscd{};
  const scsi::Naa naa = scsi::naa_of(unit.scsi_identity());
  cscd[0] = 0xe4;
  cscd[4] = 0x01;  // binary
  cscd[5] = 0x03;  // NAA, of the logical unit
  cscd[7] = static_cast<uint8_t>(naa.size);
  std::copy_n(naa.value.begin(), naa.size, cscd.begin() + 8);
  store_be24(cscd.data() + 29, unit.block_size());
  return cscd;
}

}  // namespace

void TokenStore::make_room(Nanos now) {
  std::erase_if(entries_, [&](const auto& e) { return e.second.source->expired(now); });
  while (entries_.size() >= limits::kMaxRodTokens) {
    entries_.erase(std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
}

bool TokenStore::issue(const std::shared_ptr<RodSource>& source, Nanos now,
                       scsi::RodTokenBytes* token) {
  const std::shared_ptr<Unit> unit = source->unit();
  scsi::RodToken t;
  if (!unit) return false;
  random_bytes(t.secret.data(), t.secret.size());
  t.rod_type = scsi::kRodTypeAccessUponReference;
  t.bytes_represented = source->blocks() * unit->block_size();
  t.unit_uuid = unit->identity().uuid;
  const std::lock_guard lock(mutex_);
  make_room(now);
  t.copy_manager_id = next_id_++;
  scsi::build_rod_token(t, creator_cscd(*unit), unit->block_size(), *token);
  entries_[t.copy_manager_id] = {source, t, ++tick_};
  return true;
}

scsi::Outcome<std::shared_ptr<RodSource>> TokenStore::use(const scsi::RodToken& token, Nanos now) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(token.copy_manager_id);
  if (found == entries_.end()) return invalid_token(0x04);
  Entry& entry = found->second;
  if (!same_secret(entry.token.secret, token.secret) || entry.token.rod_type != token.rod_type ||
      entry.token.bytes_represented != token.bytes_represented ||
      entry.token.unit_uuid != token.unit_uuid) {
    return invalid_token(0x05);
  }
  // Expired ones are kept until room is needed: TOKEN EXPIRED tells more than TOKEN UNKNOWN.
  if (entry.source->expired(now)) return invalid_token(0x07);
  if (entry.source->revoked() || !entry.source->unit()) return invalid_token(0x06);
  entry.source->touch(now);
  entry.used = ++tick_;
  return entry.source;
}

void TokenStore::remove(const scsi::RodToken& token) {
  const std::lock_guard lock(mutex_);
  entries_.erase(token.copy_manager_id);
}

size_t TokenStore::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace sluice::lun
