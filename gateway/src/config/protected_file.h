// Reads files with secrets, and checks that other users can't read them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace sluice::config {

struct FileOwner {
  uid_t uid = 0;
  gid_t gid = 0;
  mode_t mode = 0;
};
struct Reader {
  uid_t uid = 0;
  std::vector<gid_t> gids;
};

// Why this file may not contain a secret, with the remedy; empty: it may. It must belong to the
// reader or to root, and must not be accessible to others. Its group may read it only if root owns
// it and the reader is in that group, as for service accounts and mounted secrets.
std::string protection_fault(const std::string& path, const FileOwner& owner, const Reader& reader);

struct FileText {
  std::string text;
  std::string fault;  // protection_fault() of the file
};
// Reads at most `limit` bytes; a larger file is an error, as is anything except a regular file or a
// pipe.
Result<FileText> read_file(const std::string& path, size_t limit);

}  // namespace sluice::config
