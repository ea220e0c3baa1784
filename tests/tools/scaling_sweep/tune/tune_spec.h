// A spec for tests of tuning: 2 x 2 x 3 combinations and a preset.
#pragma once

#include "tools/scaling_sweep/run/spec.h"
#include "tools/scaling_sweep/tune/candidate.h"

namespace hvdlite::scaling_sweep {

inline Spec TuneSpec() {
  return ParseSpec(R"(
      name: 't' command: ['prog', '{report}'] repeats: 1 scaling: STRONG
      ranks: 1
      tune {
        dimension { name: 'preset' option { name: 'none' }
          option { name: 'socket' launcher_flag: ['--preset', 'socket'] } }
        dimension { name: 'blas' option { name: 'default' }
          option { name: 'fast' environment { name: 'BLAS' value: 'fast' } } }
        dimension { name: 'world' option { name: '1' ranks: 1 }
          option { name: '2' ranks: 2 threads: 1 } }
        dimension { name: 'alloc' option { name: 'default' }
          option { name: 'je' launcher_flag: ['--alloc', 'je'] }
          option { name: 'tc' launcher_flag: ['--alloc', 'tc'] } }
      })",
                   "s")
      .value();
}

inline Dimensions DimensionsFrom(const Spec& spec) {
  return {spec.tune().dimension().begin(), spec.tune().dimension().end()};
}

}  // namespace hvdlite::scaling_sweep
