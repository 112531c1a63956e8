"""Problems of a deployment that `mooring doctor osdpl` shows."""
