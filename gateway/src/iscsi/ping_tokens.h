// The tokens that an owner gives out on a forwarding session (DESIGN R6): random, so that none can
// be known before it was sent, and remembered with their time, so that its age needs no clock but
// the owner's.
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
  // When a command that carries `token` is to be submitted at the latest. A token that is unknown,
  // or was forgotten, was over before everything: 1.
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
    Nanos sent = 0;  // 0: none
  };
  std::array<Token, limits::kTokenLife / limits::kTokenInterval + 2> tokens_;
  size_t at_ = 0;
};

}  // namespace sluice::iscsi
