#include "forward/owner_login.h"

#include <algorithm>
#include <vector>

#include "iscsi/login/chap.h"
#include "iscsi/login/login_setup.h"

namespace sluice::forward {
namespace {

constexpr uint16_t kWrongKey = static_cast<uint16_t>(iscsi::LoginStatus::kAuthenticationFailure);

}  // namespace

InitiatorLogin::Setup login_setup(const Surroundings& around, const Peer& owner, size_t key) {
  const iscsi::ForwardingAccess::Identity self = around.access->identity();
  InitiatorLogin::Setup setup;
  setup.origin.gateway = self.number;
  setup.origin.incarnation = self.incarnation;
  setup.origin.owner = owner.number;
  setup.origin.owner_incarnation = owner.incarnation;
  std::vector<iscsi::ChapPair> keys =
      around.access->credentials_for(owner.number, owner.incarnation);
  if (!keys.empty()) setup.key = keys[std::min(key, keys.size() - 1)];
  for (iscsi::ChapPair& one : keys) iscsi::wipe(&one);
  setup.offer = around.offer;
  setup.random = around.random;
  return setup;
}

bool next_key(const Surroundings& around, const Peer& owner, uint16_t status, size_t* key) {
  std::vector<iscsi::ChapPair> keys =
      around.access->credentials_for(owner.number, owner.incarnation);
  const bool another = status == kWrongKey && *key + 1 < keys.size();
  for (iscsi::ChapPair& one : keys) iscsi::wipe(&one);
  *key = another ? *key + 1 : 0;
  return another;
}

}  // namespace sluice::forward
