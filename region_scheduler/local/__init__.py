"""The whole stack on one machine: engine, brokers, schedulers and workers as real processes.

`up` keeps everything in one state directory: `stack.json` (who runs, and where), `secrets.json`
(readable by its owner only), the engine's data, each broker's log, each region's files, and
`logs/`. A part that dies is started again; every part dies with `up`.
"""
