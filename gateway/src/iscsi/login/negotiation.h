// The operational keys of one login (RFC 7143 §6.2, §13). Each key's rule determines the answer to
// the initiator's offer. If a default is unsuitable, the target makes an offer itself.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "iscsi/login/keys.h"
#include "iscsi/login/parameters.h"
#include "iscsi/login/text.h"

namespace sluice::iscsi {

class Negotiation {
 public:
  explicit Negotiation(const Offer& offer);

  // In a discovery session most keys have no effect. The target answers them with a value, as LIO
  // and tgt do, because initiators parse it, but offers none of them.
  void set_discovery(bool discovery) { discovery_ = discovery; }

  // Processes the operational and unknown keys of one request in their order, and appends the
  // answers in the same order. Error: the initiator's fault (login status 02/00).
  Result<void> take(std::span<const TextPair> pairs, std::string* answers);

  // Appends the keys that the target declares once, in its first answer of the operational stage.
  void declare(std::string* answers);
  // Appends offers for keys that the initiator has not sent and whose default is unsuitable.
  void offer_missing(std::string* answers);
  bool awaiting_answers() const;

  // Ends the negotiation. Error: the result is unusable.
  Result<void> finish();

  // The result so far; the caller sets the names.
  const Parameters& outcome() const { return outcome_; }

 private:
  enum class Standing : uint8_t { kOpen, kOffered, kSettled };
  struct Entry {
    Standing standing = Standing::kOpen;
    uint32_t value = 0;    // number, or 1 for Yes; for lists: CRC32C was selected
    uint32_t offered = 0;  // the value that the target offered
  };

  Entry& entry(Key key) { return entries_[static_cast<unsigned>(key)]; }
  const Entry& entry(Key key) const { return entries_[static_cast<unsigned>(key)]; }
  Result<void> take_one(const TextPair& pair, std::string* answer);
  Result<void> take_again(const KeyRule& rule, std::string_view value, std::string* answer);
  Result<void> take_declaration(const KeyRule& rule, std::string_view value);
  Result<void> take_answer(const KeyRule& rule, std::string_view value);
  std::string answer_offer(const KeyRule& rule, std::string_view value);
  std::string answer_list(const KeyRule& rule, std::string_view value);
  std::string answer_boolean(const KeyRule& rule, std::string_view value);
  std::string answer_number(const KeyRule& rule, std::string_view value);
  uint32_t our_number(Key key) const;
  void propose(Key key, uint32_t number, std::string* answers);
  void write_outcome();

  Offer offer_;
  bool discovery_ = false;
  std::array<Entry, kKeyCount> entries_;
  Parameters outcome_;
};

}  // namespace sluice::iscsi
