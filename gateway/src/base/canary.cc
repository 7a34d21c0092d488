#include "base/canary.h"

#ifdef SLUICE_CANARIES

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace sluice {
namespace {

struct Canary {
  std::string_view name;
  Guard lacks;
  Guard also = Guard::kNone;
};

constexpr std::array<Canary, 22> kCanaries = {{
    {"r1-two-owners", Guard::kOneOwner},
    {"r2-no-lock", Guard::kLock},
    {"r2-old-snapshot", Guard::kRecord},
    {"r4-serves-on", Guard::kFence},
    {"r5-ranges-freed", Guard::kRange},
    {"r6-no-pings", Guard::kPing},
    {"r6-never-closed", Guard::kClose},
    {"r6-age-unlooked", Guard::kAge},
    {"r6-late-delivery", Guard::kClose, Guard::kAge},
    {"r6-frozen", Guard::kStall},
    {"r6-no-watchdog", Guard::kWatchdog},
    {"r6-hung-reactor", Guard::kStall, Guard::kWatchdog},
    {"r6-old-tokens", Guard::kToken},
    {"r6-lingering", Guard::kLinger},
    {"r6-orphans", Guard::kToken, Guard::kLinger},
    {"r2-no-blocklist", Guard::kBlocklist},
    {"r2-lock-on-demand", Guard::kRbdLockMode},
    {"r12-rbd-cache", Guard::kRbdCache},
    {"chap-optional", Guard::kChap},
    {"any-origin", Guard::kPeer},
    {"any-image", Guard::kImage},
    {"any-pool", Guard::kMarker},
}};

Canary named(std::string_view text) {
  if (text.empty()) return {text, Guard::kNone};
  for (const Canary& canary : kCanaries) {
    if (canary.name == text) return canary;
  }
  std::fprintf(stderr, "SLUICE_CANARY: no canary has this name\n");
  std::exit(2);
}

}  // namespace

const char* canary() {
  const char* text = std::getenv("SLUICE_CANARY");
  if (text == nullptr) return "";
  named(text);
  return text;
}

bool lacks(Guard guard) {
  static const Canary self = named(canary());
  return guard == self.lacks || guard == self.also;
}

}  // namespace sluice

#endif
