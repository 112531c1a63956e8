#!/usr/bin/env bash
# Runs what is due in the long tier, for at most 20 minutes: what the changes since the last
# run reach, and what has not run for ten runs. It names what did not fit, which then comes
# first the next time. Its record is ~/.cache/mooring/ci/long.json.
set -euo pipefail
exec "$(dirname "${BASH_SOURCE[0]}")/tiers.sh" long
