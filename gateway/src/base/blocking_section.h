// Marks the part of a thread's work that may block in the kernel for as long as a disk, a server or
// another process does. ExitGuard (exit_guard.h) finds threads that stay in such a part.
//
// Threads: any. A section belongs to the thread that made it. It costs two stores.
#pragma once

#include <cstdint>
#include <map>

namespace sluice {

class BlockingSection {
 public:
  BlockingSection();  // within another section of the thread: nothing
  ~BlockingSection();
  BlockingSection(const BlockingSection&) = delete;
  BlockingSection& operator=(const BlockingSection&) = delete;

  // Finds sections that last long.
  //
  // Threads: one for each object.
  class Scan {
   public:
    // Whether a section that the previous call saw has not ended since. The interval between two
    // calls is thus the shortest time that counts as long.
    bool finds_lasting();

   private:
    std::map<const void*, uint64_t> seen_;  // by thread: the number of its section
  };

 private:
  const bool outermost_;
};

}  // namespace sluice
