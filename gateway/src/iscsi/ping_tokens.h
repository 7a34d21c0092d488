// The tokens that an owner sends on a forwarding session (DESIGN R6). They are random, so that a
// token is unknown before it is sent. The owner stores the time of each, so that only its own clock
// determines the age.
#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "base/limits.h"

namespace sluice::iscsi {

class PingTokens {
 public:
  void issue(uint64_t token, Nanos now) {
    at_ = (at_ + 1) % tokens_.size();
    tokens_[at_] = {token, now};
  }
  // The latest time at which a command with `token` may be submitted. 1 for an unknown or forgotten
  // token, which is always in the past.
  Nanos fresh_until(uint64_t token) const {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const Token& t = tokens_[(at_ + tokens_.size() - i) % tokens_.size()];
      if (t.value == token && t.sent != 0) return t.sent + limits::kTokenLife;
    }
    return 1;
  }

 private:
  struct Token {
    uint64_t value = 0;
    Nanos sent = 0;  // 0: unused
  };
  std::array<Token, limits::kTokenLife / limits::kTokenInterval + 2> tokens_;
  size_t at_ = 0;
};

}  // namespace sluice::iscsi
