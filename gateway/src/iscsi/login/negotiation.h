// The operational keys of one login (RFC 7143 §6.2, §13): what the initiator offers is answered by
// each key's rule; where a default wouldn't suit us, we offer and the initiator answers.
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
  // and tgt do, because initiators parse it. The target offers none of them.
  void set_discovery(bool discovery) { discovery_ = discovery; }

  // Takes the operational keys and the unknown ones of one request, in their order, and appends
  // the answers in the same order. An error is the initiator's (login status 02/00).
  Result<void> take(std::span<const TextPair> pairs, std::string* answers);

  // The keys we declare once, in our first answer of the operational stage.
  void declare(std::string* answers);
  // Offers for what the initiator left open and whose default doesn't suit us.
  void offer_missing(std::string* answers);
  bool awaiting_answers() const;

  // Ends the negotiation; fails when the outcome can't be worked with.
  Result<void> finish();

  // Agreed so far; names are the caller's business.
  const Parameters& outcome() const { return outcome_; }

 private:
  enum class Standing : uint8_t { kOpen, kOffered, kSettled };
  struct Entry {
    Standing standing = Standing::kOpen;
    uint32_t value = 0;    // number, or Yes as 1; for lists whether CRC32C
    uint32_t offered = 0;  // what we proposed
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
